"""``mle-gym feasible``: which tasks the start policy can solve at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from rich.table import Table
from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, console, parse, write_json
from mle_gym.tasks.task import TaskUnavailable
from trainers.protocol.options import SamplingOptions, are_tasks, full_ids, gym_arguments
from trainers.protocol.session import Session, load_policy, token_limits

__all__ = ["main"]


@dataclass(frozen=True)
class Options(SamplingOptions):
    """Say which tasks a policy can learn: those where at least one of its programs hands in a valid submission.

    This is how arXiv 2509.01684 chose its 12 tasks: at least one of 128 samples at temperature 0.7. A submission is
    valid when the grader accepts it. The column `beats sample` is stricter: a model was fitted, and the score beats the
    sample submission's.
    """

    ids: Annotated[Positional[tuple[str, ...]], arg(metavar="ID")] = ()
    """Environment ids or names of tasks."""
    policy: str = "tiny"
    """Name or folder of a causal language model."""
    samples: int = 128
    """Programs for each task."""


def main(argv: Sequence[str]) -> int:
    """Say which tasks a policy solves at all, by the paper's rule."""
    options = parse(Options, argv, command="feasible")
    if not options.ids:
        raise UserError("Name at least one task, for example `mle-gym feasible credit-default`.")
    if options.samples < 1:
        raise UserError(f"--samples {options.samples} must be at least 1.")
    ids = full_ids(options.ids)
    policy = load_policy(options.policy, dtype=options.dtype, device=options.device, threads=options.threads)
    budget, longest = token_limits(policy, options.token_budget, options.max_new_tokens)
    kwargs = {**({"token_budget": budget} if are_tasks(ids) else {}), **gym_arguments(options)}
    tasks: dict[str, Any] = {}
    for env_id in ids:
        # One after another, so that data that cannot be had for one task are no reason to try none.
        try:
            with Session(
                [env_id],
                kwargs,
                policy,
                slots=options.slots,
                programs=options.samples,
                temperature=options.temperature,
                max_new_tokens=longest,
                seed=options.seed,
            ) as session:
                tasks[env_id] = _row(session, env_id, options.samples)
        except TaskUnavailable as error:
            if len(ids) == 1:
                raise
            tasks[env_id] = {"feasible": None, "unavailable": str(error)}
    document = {
        "policy": options.policy,
        "samples": options.samples,
        "temperature": options.temperature,
        "token_budget": budget,
        "max_new_tokens": longest,
        "reward_split": options.reward_split,
        "seed": options.seed,
        "feasible": [env_id for env_id, row in tasks.items() if row["feasible"]],
        "tasks": tasks,
    }
    if options.json:
        write_json(document)
    else:
        _show(document)
    return 0


def _row(session: Session, env_id: str, samples: int) -> dict[str, Any]:
    trials = session.scratch(env_id, samples)
    counted = [trial for trial in trials if trial["info"].get("reward_valid", True)]
    accepted = sum(trial["info"].get("outcome") == "scored" for trial in counted)
    best = session.best(env_id, counted)
    credits = [float(trial["info"].get("partial_credit") or 0.0) for trial in counted]
    return {
        # With programs lost to the machine, none valid among the rest says nothing yet.
        "feasible": True if accepted else (None if len(counted) < samples else False),
        "data": session.data[env_id],
        "samples": len(counted),
        "failed_infrastructure": len(trials) - len(counted),
        "valid": accepted,
        "beats_sample": sum(session.judge.valid(env_id, trial["info"]) for trial in counted),
        "best_public_score": None if best is None else best.public_score,
        "mean_partial_credit": float(np.mean(credits)) if credits else None,
        "outcomes": dict(Counter(str(trial["info"].get("outcome", "")) for trial in counted)),
    }


def _show(document: dict[str, Any]) -> None:
    out = console()
    head = (
        f"{document['policy']}: {document['samples']} programs for each task, temperature {document['temperature']:g}"
    )
    table = Table(title=head, title_justify="left")
    for name in ("task", "data", "feasible", "valid", "beats sample", "best public score", "most frequent failure"):
        table.add_column(name, justify="left" if name in ("task", "data", "most frequent failure") else "right")
    for env_id, row in document["tasks"].items():
        if "unavailable" in row:
            table.add_row(env_id, "-", "-", "-", "-", "-", row["unavailable"])
            continue
        failures = Counter({name: count for name, count in row["outcomes"].items() if name != "scored"}).most_common(1)
        table.add_row(
            env_id,
            row["data"] or "-",
            {True: "yes", False: "no", None: "unknown"}[row["feasible"]],
            f"{row['valid']} of {row['samples']}",
            str(row["beats_sample"]),
            "-" if row["best_public_score"] is None else f"{row['best_public_score']:.4g}",
            f"{failures[0][0]} ({failures[0][1]})" if failures else "-",
        )
    out.print(table)
