"""``mle-gym tasks``: what there is to solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mle_gym.commands.base import UserError, console, parse, write_json
from mle_gym.registration import env_id
from mle_gym.tasks.registry import list_tasks
from mle_gym.tasks.task import Task

__all__ = ["main"]


@dataclass(frozen=True)
class Options:
    """List the tasks: id, kind, metric, title."""

    tag: str | None = None
    """Only tasks that carry this tag."""
    json: bool = False
    """Print JSON."""


def main(argv: Sequence[str]) -> int:
    """List the tasks."""
    options = parse(Options, argv, command="tasks")
    tasks = list_tasks(options.tag)
    if not tasks and options.tag is not None:
        tags = sorted({tag for task in list_tasks() for tag in task.tags})
        raise UserError(f"No task carries the tag {options.tag!r}; the tags are {', '.join(tags)}.")
    if options.json:
        write_json([_row(task) for task in tasks])
        return 0
    from rich.table import Table

    table = Table("id", "kind", "metric", "title", box=None, header_style="bold", pad_edge=False)
    for task in tasks:
        table.add_row(env_id(task.name), task.kind, f"{task.metric} {_arrow(task)}", task.title)
    console().print(table, markup=False, highlight=False)
    return 0


def _arrow(task: Task) -> str:
    """Return which way the metric is better."""
    return "↑" if task.higher_is_better else "↓"


def _row(task: Task) -> dict[str, object]:
    """Return what JSON readers get of a task."""
    return {
        "id": env_id(task.name),
        "title": task.title,
        "kind": task.kind,
        "metric": task.metric,
        "higher_is_better": task.higher_is_better,
        "tags": task.tags,
        "source": task.source,
        "licence": task.licence,
        "known_issues": task.known_issues,
    }
