"""``mle-gym evaluate``: how good a policy is on fresh programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.table import Table
from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, console, parse, write_json
from trainers.common.checkpoint import Checkpoints
from trainers.common.config import TrainConfig, load_config
from trainers.common.jsonlines import write_json as save_json
from trainers.protocol.improve_once import best_of_n, improve_once
from trainers.protocol.options import SamplingOptions, are_tasks, full_ids, gym_arguments
from trainers.protocol.session import Session, load_policy, token_limits

__all__ = ["main"]


@dataclass(frozen=True)
class Options(SamplingOptions):
    """Judge a policy on fresh programs; the public score chooses, the private one is reported beside it.

    best-of-n: the best of n programs from scratch. improve-once: that one is shown to the policy with its output, and
    the better of the two counts, as in arXiv 2509.01684.
    """

    policy: Annotated[Positional[str], arg(metavar="RUN|POLICY")] = ""
    """A run folder (its tasks, arguments of gym.make and trained policy), or the name or folder of a policy."""
    ids: tuple[str, ...] = ()
    """Environment ids or names of tasks; by default the run's."""
    protocol: Literal["best-of-n", "improve-once"] = "improve-once"
    """What is done."""
    samples: Annotated[int, arg(aliases=("-n",))] = 128
    """Programs from scratch for each task."""
    improvements: int = 1
    """improve-once: programs that try to improve the best one."""
    out: Path | None = None
    """Write the result to this file, too."""


def main(argv: Sequence[str]) -> int:
    """Judge a policy on fresh programs: best of n, or best of n and improve once."""
    options = parse(Options, argv, command="evaluate")
    if not options.policy:
        raise UserError("Name a run folder or a policy, for example `mle-gym evaluate tiny --ids credit-default`.")
    for flag, value in (("-n", options.samples), ("--improvements", options.improvements)):
        if value < 1:
            raise UserError(f"{flag} {value} must be at least 1.")
    name, ids, kwargs, run = _subject(options)
    dtype = run.policy.dtype if run is not None and options.dtype == "auto" else options.dtype
    policy = load_policy(name, dtype=dtype, device=options.device, threads=options.threads)
    longest = options.max_new_tokens
    if run is not None:
        longest = longest if longest is not None else run.generation.max_new_tokens
        if options.token_budget is not None:
            kwargs["token_budget"] = options.token_budget
    else:
        budget, longest = token_limits(policy, options.token_budget, longest)
        if are_tasks(ids):
            kwargs = {"token_budget": budget, **kwargs}
    results: dict[str, Any] = {}
    with Session(
        ids,
        kwargs,
        policy,
        slots=options.slots,
        programs=options.samples,
        temperature=options.temperature,
        max_new_tokens=longest if longest is not None else 1024,
        seed=options.seed,
    ) as session:
        for task in ids:
            if options.protocol == "improve-once":
                results[task] = improve_once(session, task, options.samples, options.improvements)
            else:
                results[task] = best_of_n(session, task, options.samples)
            results[task]["data"] = session.data[task]
    document = {
        "policy": options.policy,
        "protocol": options.protocol,
        "samples": options.samples,
        "improvements": options.improvements if options.protocol == "improve-once" else 0,
        "temperature": options.temperature,
        "reward_split": str(kwargs.get("reward_split", "public")),
        "seed": options.seed,
        "tasks": results,
    }
    if options.out is not None:
        save_json(options.out, document)
    if options.json:
        write_json(document)
    else:
        _show(document)
    return 0


def _subject(options: Options) -> tuple[str, list[str], dict[str, Any], TrainConfig | None]:
    """Policy, tasks, arguments of gym.make, and the run's configuration where it is a run."""
    folder = Path(options.policy).expanduser()
    if (folder / "config.toml").is_file():
        run = load_config(folder / "config.toml")
        policy = folder / "policy"
        if not policy.is_dir():
            latest = Checkpoints(folder / "checkpoints").latest() if (folder / "checkpoints").is_dir() else None
            if latest is None:
                raise UserError(f"The run {folder} has no policy and no checkpoint yet; let it train first.")
            policy = latest / "policy"
        ids = full_ids(options.ids) if options.ids else list(dict.fromkeys(run.env.ids))
        return str(policy), ids, {**run.env.kwargs, **gym_arguments(options)}, run
    if not options.ids:
        raise UserError(f"{options.policy} is not a run folder, so name the tasks: --ids credit-default.")
    return options.policy, full_ids(options.ids), gym_arguments(options), None


def _show(document: dict[str, Any]) -> None:
    split = document["reward_split"]
    head = f"{document['policy']}: {document['protocol']} with n = {document['samples']}, chosen by the {split} score"
    table = Table(title=head, title_justify="left")
    for name in ("task", "data", "valid", "scratch", "private", "improved", "private", "final", "private"):
        table.add_column(name, justify="left" if name in ("task", "data") else "right")
    for task, row in document["tasks"].items():
        scratch, improve = row["scratch"], row.get("improve") or {}
        cells = [_score(part, key) for part in (scratch.get("best"), improve.get("best")) for key in _KEYS]
        final = [_score(row["final"], key) for key in _KEYS]
        table.add_row(task, row["data"] or "-", f"{scratch['valid']} of {scratch['samples']}", *cells, *final)
    console().print(table)


_KEYS = ("public_score", "private_score")


def _score(part: dict[str, Any] | None, key: str) -> str:
    value = (part or {}).get(key)
    return "-" if value is None or value != value else f"{value:.4g}"
