"""``mle-gym show``: one task in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from mle_gym.commands.base import UserError, console, parse, resolve_id, write_json

__all__ = ["main"]


@dataclass(frozen=True)
class Options:
    """Show one task: description, source, licence, metric, thresholds, files and the prompt a policy sees."""

    id: Positional[str]
    """Environment id or task name, for example mle_gym/breast-cancer-v0 or breast-cancer."""
    token_budget: int = 1024
    """Size of the prompt that is shown, in tokens."""
    json: bool = False
    """Print JSON."""


def main(argv: Sequence[str]) -> int:
    """Show one task: description, data, metric, thresholds, prompt."""
    options = parse(Options, argv, command="show")
    env_id = resolve_id(options.id)
    facts = _facts(env_id, options.token_budget)
    if options.json:
        write_json(facts)
    else:
        _show(facts)
    return 0


def _facts(env_id: str, token_budget: int) -> dict[str, Any]:
    """Return everything that is shown; prepares the task's data on first use."""
    import gymnasium as gym

    from mle_gym.tasks.registry import get_task

    task = get_task(env_id)
    data = task.load()
    try:
        env = gym.make(env_id, token_budget=token_budget)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error
    try:
        prompt, _ = env.reset(seed=0)
    finally:
        env.close()
    return {
        "id": env_id,
        "title": task.title,
        "kind": task.kind,
        "description": task.description,
        "metric": task.metric,
        "higher_is_better": task.higher_is_better,
        "thresholds": asdict(task.thresholds) if task.thresholds else None,
        "sample_score": {split: data.sample_score(split) for split in data.splits},
        "data": data.kind,
        "files": {path.name: path.stat().st_size for path in _files(data.public_dir)},
        "folder": data.public_dir,
        "target": task.target,
        "source": task.source,
        "licence": task.licence,
        "tags": task.tags,
        "known_issues": task.known_issues,
        "limits": dict(task.limits),
        "prompt": prompt,
    }


def _files(folder: Path) -> list[Path]:
    """Return the files a program finds in ``input``."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _show(facts: dict[str, Any]) -> None:
    """Print the facts as one page."""
    out = console()

    def line(name: str, value: object) -> None:
        out.print(f"{name:<13}{value}", markup=False, highlight=False, soft_wrap=True)

    out.print(f"{facts['id']}: {facts['title']}", style="bold", markup=False, highlight=False)
    out.print(f"\n{facts['description'].strip()}\n", markup=False, highlight=False, soft_wrap=True)
    line("kind", facts["kind"])
    line("metric", f"{facts['metric']} ({'higher' if facts['higher_is_better'] else 'lower'} is better)")
    if facts["thresholds"]:
        line("thresholds", ", ".join(f"{name} {value:.6g}" for name, value in facts["thresholds"].items()))
    line("sample score", ", ".join(f"{split} {value:.6g}" for split, value in facts["sample_score"].items()))
    line("predict", ", ".join(facts["target"]))
    line("files", ", ".join(f"{name} ({size / 1024:,.0f} KiB)" for name, size in facts["files"].items()))
    line("folder", facts["folder"])
    line("source", facts["source"] or "unknown")
    line("licence", facts["licence"] or "unknown")
    if facts["tags"]:
        line("tags", ", ".join(facts["tags"]))
    for issue in facts["known_issues"]:
        line("known issue", issue)
    out.print("\nThe prompt:", style="bold")
    out.print(facts["prompt"], markup=False, highlight=False, soft_wrap=True)
