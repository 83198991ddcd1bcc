"""``mle-gym show``: one task in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, console, parse, resolve_id, write_json

__all__ = ["main"]


@dataclass(frozen=True)
class Options:
    """Show one task: description, source, licence, metric, thresholds, files and the prompt a policy sees."""

    id: Annotated[Positional[str], arg(metavar="ID")]
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
        "note": data.note,
        "files": _files(data.public_dir),
        "folder": data.public_dir,
        "target": task.target,
        "source": task.source,
        "licence": task.licence,
        "tags": task.tags,
        "known_issues": task.known_issues,
        "limits": dict(task.limits),
        "prompt": prompt,
    }


def _files(folder: Path) -> dict[str, dict[str, int]]:
    """Return number and bytes of what a program finds in ``input``, by entry; folders end in a slash."""
    entries: dict[str, dict[str, int]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            sizes = [inner.stat().st_size for inner in path.rglob("*") if inner.is_file()]
            entries[f"{path.name}/"] = {"files": len(sizes), "bytes": sum(sizes)}
        else:
            entries[path.name] = {"files": 1, "bytes": path.stat().st_size}
    return entries


def _describe(name: str, entry: dict[str, int]) -> str:
    """Return an entry with its size."""
    count = f"{entry['files']} files, " if name.endswith("/") else ""
    return f"{name} ({count}{entry['bytes'] / 1024:,.0f} KiB)"


def _show(facts: dict[str, Any]) -> None:
    """Print the facts as one page."""
    out = console()

    def line(name: str, value: object) -> None:
        out.print(f"{name:<13}{value}", markup=False, highlight=False, soft_wrap=True)

    out.print(f"{facts['id']}: {facts['title']}", style="bold", markup=False, highlight=False)
    out.print(f"\n{facts['description'].strip()}\n", markup=False, highlight=False, soft_wrap=True)
    line("kind", facts["kind"])
    if facts["note"]:
        line("data", facts["note"])
    line("metric", f"{facts['metric']} ({'higher' if facts['higher_is_better'] else 'lower'} is better)")
    if facts["thresholds"]:
        line("thresholds", ", ".join(f"{name} {value:.6g}" for name, value in facts["thresholds"].items()))
    line("sample score", ", ".join(f"{split} {value:.6g}" for split, value in facts["sample_score"].items()))
    line("predict", ", ".join(facts["target"]))
    line("files", ", ".join(_describe(name, entry) for name, entry in facts["files"].items()))
    line("folder", facts["folder"])
    line("source", facts["source"] or "unknown")
    line("licence", facts["licence"] or "unknown")
    if facts["tags"]:
        line("tags", ", ".join(facts["tags"]))
    for issue in facts["known_issues"]:
        line("known issue", issue)
    out.print("\nThe prompt:", style="bold")
    out.print(facts["prompt"], markup=False, highlight=False, soft_wrap=True)
