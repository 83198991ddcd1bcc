"""Task and history -> the text an agent reads.

A prompt is a list of sections, each with variants from short to long. All start at the shortest; then, in a fixed order
of importance, sections grow as long as the whole fits the budget. So the text is a pure function of the task, its data
and the budget, and a larger budget never says less about a section that comes first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mle_gym.attempt import Attempt
from mle_gym.sandbox.base import Limits
from mle_gym.survey import KINDS, FileFacts, survey
from mle_gym.tasks.task import Task, TaskData

__all__ = ["CHARACTERS_PER_TOKEN", "MIN_TOKEN_BUDGET", "characters", "render_improve", "render_solve", "tokens"]

CHARACTERS_PER_TOKEN = 3
"""A cautious estimate for code and column names: tokenisers of current models take about four characters of English and
about three of CSV and code."""

MIN_TOKEN_BUDGET = 64
_WORDS = "description.md"  # Shown as text, not among the files.
_LONGEST_WORDS = 200_000
_STAND_IN = "The data are invented: small stand-ins with the files, columns and formats of the real ones."

_FORMAT = "Answer with a plan of 3 to 5 sentences, then exactly one ```python code block."
_SOLVE = (
    "Solve this machine-learning task with one complete Python program that trains a model, predicts the test rows and "
    "writes the submission. First outline your solution in 3 to 5 plain sentences, then give the program in exactly "
    "one ```python code block. The program runs once, in a folder of its own, with the data in input/, read-only."
)
_IMPROVE_SHORT = f"Improve the earlier answer below; repeat all code you keep. {_FORMAT}"
_IMPROVE = "Below is an earlier answer to this task. Revise it so that it scores better, and repeat all code you keep."


def tokens(text: str) -> int:
    """Approximate number of tokens: ``ceil(characters / 3)``."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def characters(token_budget: int) -> int:
    """The most characters that count as ``token_budget`` tokens."""
    return token_budget * CHARACTERS_PER_TOKEN


def render_solve(
    task: Task, data: TaskData, limits: Limits, token_budget: int, *, packages: Sequence[str] | None = None
) -> str:
    """Return the prompt that asks for a first solution.

    Args:
        task: What is to be solved.
        data: Its files; only the public folder is read.
        limits: What one program may use, as it is told.
        token_budget: The text has at most this many approximate tokens (see :func:`tokens`).
        packages: Packages that programs can import; None: not known, and nothing is said.
    """
    return _fit(_sections(task, data, limits, packages, _FORMAT, _SOLVE), characters(token_budget))


def render_improve(
    task: Task,
    data: TaskData,
    limits: Limits,
    token_budget: int,
    previous: Attempt,
    *,
    packages: Sequence[str] | None = None,
) -> str:
    """Return the prompt that shows an earlier attempt and asks for a better one.

    The earlier program comes first in importance, then what it printed, then details of the task. A program that does
    not fit loses lines from its middle, and the cut is marked. The plan is shown where there is room for it.
    """
    budget = characters(token_budget)
    ended = _ending(task, previous)
    sections = _sections(task, data, limits, packages, _IMPROVE_SHORT, f"{_IMPROVE} {_SOLVE}")
    least = sum(len(section.variants[0]) + 1 for section in sections if section.variants[0])
    room = max(min(budget // 2, budget - least) - len(ended) - 55, 0)  # The frame of the parts takes 55.
    program = _cut(previous.program.rstrip("\n"), room - room // 4, "# [{} characters left out]")
    room -= len(program)
    output = _cut(previous.terminal_output.strip(), room, "[{} characters left out]", tail=0.8)
    room -= len(output)
    plan = previous.plan.strip()
    fence = "`" * (3 if "```" not in program + output else 1 + max(map(len, re.findall("`+", program + output))))
    parts = [
        "Earlier answer:",
        plan if len(plan) <= max(room, budget // 16) else "",
        f"{fence}python\n{program}\n{fence}" if program else "It had no program.",
        ended,
        f"Its output:\n{fence}\n{output}\n{fence}" if output else "",
    ]
    earlier = "\n".join(filter(None, parts))
    return f"{_fit(sections, budget - len(earlier) - 1)}\n{earlier}"


@dataclass(slots=True)
class _Section:
    """Variants of one part of a prompt, short to long; ``rank`` of each step from a variant to the next one."""

    variants: list[str]
    ranks: list[int]


def _fit(sections: list[_Section], budget: int) -> str:
    chosen = [0] * len(sections)

    def text() -> str:
        return "\n".join(filter(None, (s.variants[i] for s, i in zip(sections, chosen, strict=True))))

    steps = sorted((rank, at, i) for at, s in enumerate(sections) for i, rank in enumerate(s.ranks, start=1))
    for _, at, variant in steps:
        before = chosen[at]
        chosen[at] = variant
        if len(text()) > budget:
            chosen[at] = before
    return _cut(text(), budget, "[...]")


def _sections(
    task: Task, data: TaskData, limits: Limits, packages: Sequence[str] | None, brief: str, thorough: str
) -> list[_Section]:
    facts = {fact.name: fact for fact in survey(data.public_dir)}
    paragraph, description = _description(task)
    words = [paragraph, description, _prepared_words(data)]
    words = [text for at, text in enumerate(words) if at == 0 or (text and text not in words[:at])]
    direction = "higher" if task.higher_is_better else "lower"
    goal = f"# {task.title}\nmetric: {task.metric}, {direction} is better"
    order = [*task.train_files, *task.test_files, *facts]
    shown = dict.fromkeys(name for name in order if name in facts and name not in (data.sample_submission, _WORDS))
    inputs = [facts[name] for name in shown]
    beside = {fact.name: fact for fact in survey(data.sample_copy.parent)} if data.sample_copy else facts
    sample = beside.get(data.sample_path.name, FileFacts(data.sample_submission))
    columns = ",".join(sample.columns)
    rows = _rows(sample, ", {} rows in the order of " + data.sample_shown)
    short = f"write submission.csv: {_shorten(columns, 160)}"
    full = f"write submission.csv: {columns}{rows}"
    begins = f"{full}, which begins\n{_block(sample.head[:4])}" if sample.head else full
    return [
        _Section(["", brief, thorough], [20, 90]),
        _Section([goal], []),
        _Section(["", _STAND_IN] if data.kind == "synthetic" else [""], [59] if data.kind == "synthetic" else []),
        _Section(["", *words], [60, 100, 110][: len(words)]),
        _Section(["", *_files(task, inputs)], [1, 2, 3, 10]),
        _Section(["write submission.csv", short, short + rows, full, begins], [0, 30, 49, 50]),
        _Section(["", _limits(limits)], [40]),
        _Section(["", _packages(packages)], [45]),
        _Section(["", *_heads(inputs)], [70, 80]),
    ]


def _description(task: Task) -> tuple[str, str]:
    text = task.description.strip()
    return text.partition("\n\n")[0].strip(), text


def _prepared_words(data: TaskData) -> str:
    """The description that came with prepared data, as MLE-bench puts it among the public files."""
    path = data.public_dir / _WORDS
    if data.kind != "prepared" or not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_WORDS).strip()


def _limits(limits: Limits) -> str:
    cores = {0: "shared CPU cores", 1: "1 CPU core"}.get(limits.cores, f"{limits.cores} CPU cores")
    gpus = {0: "no GPU", 1: "1 GPU"}.get(limits.gpus, f"{limits.gpus} GPUs")
    return f"limits: {limits.time:g} s, {limits.memory_mb} MiB memory, {cores}, {gpus}, no internet"


def _packages(packages: Sequence[str] | None) -> str:
    if packages is None:
        return ""
    return "packages: " + (", ".join(packages) if packages else "the standard library only")


def _files(task: Task, inputs: list[FileFacts]) -> list[str]:
    """Lines on the input files: names only, kinds counted, a few columns, all columns."""
    names = ["input/" + fact.name + ("/" if fact.files and not fact.archive else "") for fact in inputs]
    listed = {fact.name: fact for fact in inputs}
    train = next((listed[n] for n in task.train_files if n in listed and listed[n].columns), None)
    test = next((listed[n] for n in task.test_files if n in listed and listed[n].columns), None)
    unknown = [c for c in train.columns if c not in test.columns] if train and test else []
    # The submission may name its columns otherwise, one for each class say; then what only train has is the target.
    target = [c for c in task.target if train and c in train.columns] or (unknown if len(unknown) <= 3 else [])
    variants = ["data: " + _shorten(", ".join(names), 200)]
    for most in (0, 4, 10_000):
        lines = [_file_line(task, fact, train, target, most) for fact in inputs]
        gaps = any(fact.gaps for fact in inputs if fact is train) and most > 0
        variants.append("\n".join(lines) + ("\n(? has missing values)" if gaps else ""))
    return variants


def _file_line(task: Task, fact: FileFacts, train: FileFacts | None, target: list[str], most: int) -> str:
    if fact.files:
        slash = "" if fact.archive else "/"
        return f"input/{fact.name}{slash}: {fact.files} files {' '.join(fact.suffixes)}".rstrip()
    if not fact.columns:
        return f"input/{fact.name}"
    start = f"input/{fact.name}" + _rows(fact, ", {} rows")
    if train is not None and fact is not train:
        missing = [name for name in train.columns if name not in fact.columns]
        if fact.columns == tuple(name for name in train.columns if name not in missing):
            without = f" without {', '.join(missing)}" if missing else ""
            return start + (f": the same columns{without}" if len(missing) <= 5 else f": {len(fact.columns)} columns")
    targets = [name for name in target if name in fact.columns]
    marked = [f"target {', '.join(targets)}"] if targets else []
    if task.id_column in fact.columns:
        marked.append(f"id {task.id_column}")
    for kind in KINDS:
        names = [
            name + ("?" if name in fact.gaps else "")
            for name in fact.columns
            if fact.kinds[name] == kind and name not in targets and name != task.id_column
        ]
        if names and most == 0:
            marked.append(f"{len(names)} {kind}")
        elif names:
            more = f" and {len(names) - most} more" if len(names) > most else ""
            marked.append(f"{kind} {', '.join(names[:most])}{more}")
    return f"{start}: " + " | ".join(marked)


def _heads(inputs: list[FileFacts]) -> list[str]:
    texts = []
    for lines in (3, 6):
        parts = [
            f"input/{fact.name} begins\n{_block([_shorten(line, 300) for line in fact.head[:lines]])}"
            for fact in inputs
            if fact.head
        ]
        texts.append("\n".join(parts))
    return texts


def _block(lines: Sequence[str]) -> str:
    return "```\n" + "\n".join(lines) + "\n```"


def _rows(fact: FileFacts, template: str) -> str:
    return "" if fact.rows is None else template.format(fact.rows)


def _ending(task: Task, previous: Attempt) -> str:
    parts = []
    if not math.isnan(previous.score):
        parts.append(f"{task.metric} {previous.score:.5g}")
    elif previous.outcome:
        parts.append(previous.outcome.replace("_", " "))
    if previous.message:
        parts.append(_shorten(previous.message, 120))
    if parts and not previous.terminal_output.strip():
        parts.append("It printed nothing")
    return f"It ended with: {'. '.join(part.rstrip('.') for part in parts)}." if parts else ""


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."


def _cut(text: str, most: int, marker: str, *, tail: float = 1 / 3) -> str:
    """Cut the middle out of ``text`` so that it has at most ``most`` characters, whole lines where possible.

    ``tail`` is the share of what stays that comes from the end; where there is no room for the marker, the larger
    share alone stays.
    """
    if len(text) <= most:
        return text
    room = most - len(marker.format(len(text))) - 2
    if room < 20:
        return text[:most] if tail < 0.5 else text[len(text) - max(most, 0) :]
    last = int(room * tail)
    head, end = text[: room - last], text[len(text) - last :]
    if "\n" in head[len(head) // 2 :]:
        head = head[: head.rindex("\n")]
    if "\n" in end[: len(end) // 2]:
        end = end[end.index("\n") + 1 :]
    return f"{head}\n{marker.format(len(text) - len(head) - len(end))}\n{end}"
