"""The pages of docs/tasks: one for each task, and their index."""

from __future__ import annotations

from collections.abc import Iterable

from mle_gym.registration import env_id
from mle_gym.tasks.mlebench.task import CompetitionTask
from mle_gym.tasks.task import Task

__all__ = ["index", "page", "pages"]


def pages(tasks: Iterable[Task]) -> dict[str, str]:
    """Return file name -> text for every task, and ``index.md``."""
    listed = list(tasks)
    return {"index.md": index(listed), **{f"{task.name}.md": page(task) for task in listed}}


def index(tasks: list[Task]) -> str:
    """Return the list of all pages, MLE-bench's competitions by complexity."""
    parts = ["# Tasks", "One page for each task; `make docs` writes them from the same facts that the code uses."]
    groups = {"Offline tasks, on real data that come with packages": [t for t in tasks if "offline" in t.tags]}
    for split, title in (("lite", "Lite"), ("medium", "medium"), ("high", "high"), ("dev", "development")):
        groups[f"MLE-bench, {title}"] = [t for t in tasks if split in t.tags and "mlebench" in t.tags]
    for title, members in groups.items():
        rows = "\n".join(
            f"| [{task.title}]({task.name}.md) | {task.kind} | {task.metric} {'↑' if task.higher_is_better else '↓'} |"
            for task in members
        )
        parts.append(f"## {title} ({len(members)})\n\n| task | kind | metric |\n| --- | --- | --- |\n{rows}")
    return "\n\n".join(parts) + "\n"


def page(task: Task) -> str:
    """Return a task's page."""
    direction = "higher" if task.higher_is_better else "lower"
    rows = [
        ("id", f"`{env_id(task.name)}`"),
        ("kind", task.kind),
        ("metric", f"{task.metric}, {direction} is better"),
        ("submission", f"`{task.id_column}` and {_columns(task.target)}"),
        ("labelled data", ", ".join(f"`input/{name}`" for name in task.train_files)),
        ("data to predict", ", ".join(f"`input/{name}`" for name in task.test_files)),
        ("source", f"<{task.source}>" if task.source.startswith("http") else task.source),
        ("licence of the data", task.licence),
    ]
    if isinstance(task, CompetitionTask):
        rows += _facts(task)
    parts = [f"# {task.title}", task.description.strip(), "| | |\n| --- | --- |\n" + _rows(rows)]
    if isinstance(task, CompetitionTask):
        parts.append(f"## Metric\n\n{task.facts.metric_definition}")
    if task.thresholds:
        bars = task.thresholds
        values = f"| {bars.gold:g} | {bars.silver:g} | {bars.bronze:g} | {bars.median:g} |"
        where = f"Source: {task.facts.thresholds_source}." if isinstance(task, CompetitionTask) else ""
        head = "| gold | silver | bronze | median |\n| --- | --- | --- | --- |"
        parts.append(f"## Thresholds\n\n{head}\n{values}\n\n{where}".rstrip())
    if task.known_issues:
        parts.append("## Known issues\n\n" + "\n".join(f"- {issue}" for issue in task.known_issues))
    return "\n\n".join(parts) + "\n"


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"| {name} | {value} |" for name, value in rows if value)


def _columns(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _facts(task: CompetitionTask) -> list[tuple[str, str]]:
    facts = task.facts
    assigned = " (assigned here)" if facts.category_assigned else ""
    size = f"{facts.size_gb:g} GB" if facts.size_gb is not None else ""
    counts = f"{facts.n_train} / {facts.n_test}" if facts.n_train and facts.n_test else ""
    teams = f"{facts.teams:,} ({facts.teams_source})" if facts.teams else ""
    return [
        ("category", facts.category + assigned),
        ("complexity", facts.complexity),
        ("splits", ", ".join(facts.splits)),
        ("size of the data set", size),
        ("units in train / test", counts),
        ("teams", teams),
        ("sample submission on real data", "" if facts.sample_score is None else f"{facts.sample_score:g}"),
    ]
