"""``mle-gym tasks``: what there is to solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mle_gym.commands.base import UserError, parse, write_json
from mle_gym.registration import env_id
from mle_gym.tasks.mlebench.catalogue import SPLITS
from mle_gym.tasks.registry import list_tasks
from mle_gym.tasks.task import Task

__all__ = ["main", "markdown_table"]

_COLUMNS = ("id", "kind", "metric", "title")


@dataclass(frozen=True)
class Options:
    """List the tasks: id, kind, metric (↑ higher is better, ↓ lower), title."""

    tag: str | None = None
    """Only tasks that carry this tag."""
    split: str | None = None
    """Only those of MLE-bench's split: lite, low, medium, high, split75, dev or systemcard."""
    json: bool = False
    """Print JSON."""
    markdown: bool = False
    """Print a Markdown table."""


def main(argv: Sequence[str]) -> int:
    """List the tasks."""
    options = parse(Options, argv, command="tasks")
    tasks = list_tasks(options.tag)
    if options.split is not None:
        if options.split not in SPLITS:
            raise UserError(f"There is no split {options.split!r}; the splits are {', '.join(SPLITS)}.")
        tasks = tuple(task for task in tasks if options.split in task.tags)
    if not tasks and options.tag is not None:
        tags = sorted({tag for task in list_tasks() for tag in task.tags})
        raise UserError(f"No task carries the tag {options.tag!r}; the tags are {', '.join(tags)}.")
    if options.json:
        write_json([_facts(task) for task in tasks])
    elif options.markdown:
        print(markdown_table(tasks))
    else:
        print(_columns(tasks))
    return 0


def _row(task: Task) -> tuple[str, ...]:
    """Return a task's cells."""
    return (env_id(task.name), task.kind, f"{task.metric} {'↑' if task.higher_is_better else '↓'}", task.title)


def _columns(tasks: Sequence[Task]) -> str:
    """Return aligned columns, one task a line, for terminals and for grep."""
    rows = [_COLUMNS, *map(_row, tasks)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown_table(tasks: Sequence[Task]) -> str:
    """Return a Markdown table that names each task's licence too."""
    rows = [("id", "what", "metric", "licence of the data"), ("---",) * 4]
    for task in tasks:
        name, _, metric, title = _row(task)
        rows.append((f"`{name}`", title, metric, task.licence))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _facts(task: Task) -> dict[str, object]:
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
