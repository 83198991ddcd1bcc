"""``mle-gym grade``: submissions that were made elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, console, parse, resolve_id, write_json

__all__ = ["main"]


@dataclass(frozen=True)
class Options:
    """Grade a submission, or all that a submission.jsonl of MLE-bench lists.

    The exit code is 0 whenever grading worked, also for a submission that is not valid.
    """

    id: Annotated[Positional[str | None], arg(metavar="ID")] = None
    """Task name or environment id; left out with --jsonl."""
    submission: Annotated[Positional[Path | None], arg(metavar="SUBMISSION")] = None
    """The CSV file."""
    answers: Path | None = None
    """Grade against this answers file instead of the task's own."""
    split: str = "all"
    """Rows that are graded: all (as MLE-bench), public or private."""
    data_dir: Path | None = None
    """Where prepared data live."""
    jsonl: Path | None = None
    """A submission.jsonl: one {"competition_id": ..., "submission_path": ...} a line."""
    output: Path = Path()
    """Folder for the report of --jsonl."""
    json: bool = False
    """Print JSON."""


def main(argv: Sequence[str]) -> int:
    """Grade submissions."""
    options = parse(Options, argv, command="grade")
    _known_folder(options)
    if options.jsonl is not None:
        return _many(options, options.jsonl)
    if options.id is None or options.submission is None:
        raise UserError("Give a task and a submission (`mle-gym grade ID SUBMISSION`), or --jsonl FILE.")
    return _one(options, options.id, options.submission)


def _one(options: Options, name: str, submission: Path) -> int:
    from mle_gym.grading.api import grade
    from mle_gym.grading.reports import from_grade
    from mle_gym.tasks.registry import get_task
    from mle_gym.tasks.task import TaskUnavailable

    if options.split not in ("all", "public", "private"):
        raise UserError(f"--split {options.split} does not exist; choose all, public or private.")
    for path in filter(None, (submission, options.answers)):
        if not path.is_file():
            raise UserError(f"There is no file {path}.")
    task = get_task(resolve_id(name))
    try:
        note = "" if options.answers else task.load(data_dir=options.data_dir).note
        found = grade(task.name, submission, options.answers, options.split, data_dir=options.data_dir)  # type: ignore[arg-type]
    except (ValueError, TaskUnavailable) as error:
        raise UserError(str(error.args[0])) from error
    if options.json:
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}  # JSON has no word for them.
        score = names.get(found.score, found.score)
        ranked = "mlebench" in task.tags and options.split == "all"
        mle_bench = asdict(from_grade(name, found, submission)) if ranked else None
        write_json({"task": task.name, **asdict(found), "score": score, "note": note, "report": mle_bench})
        return 0
    out = console()
    if note:
        out.print(f"data: {note}", markup=False, highlight=False, soft_wrap=True)
    if not found.valid:
        out.print(f"not valid: {found.error}", markup=False, highlight=False, soft_wrap=True)
        return 0
    medal = f", {found.medal} medal" if found.medal else ""
    rank = f", beats about {found.percentile:.0%} of the leaderboard" if found.percentile == found.percentile else ""
    line = f"{task.metric} {found.score:.6g} on {found.split}{medal}{rank}"
    out.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def _known_folder(options: Options) -> None:
    """Refuse a data folder that is not there: a typing error would be answered from stand-ins."""
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"There is no folder {options.data_dir}.")


def _many(options: Options, listed: Path) -> int:
    from mle_gym.grading.reports import read_submissions, report, summary, write_summary
    from mle_gym.tasks.registry import get_task
    from mle_gym.tasks.task import TaskUnavailable

    if options.id is not None or options.answers is not None:
        raise UserError("--jsonl names tasks and submissions by itself; leave out ID, SUBMISSION and --answers.")
    try:
        entries = read_submissions(listed)
        reports = [report(entry.competition_id, entry.submission_path, options.data_dir) for entry in entries]
    except FileNotFoundError:
        raise UserError(f"There is no file {listed}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{listed} cannot be read: {error}.") from error
    except (KeyError, ValueError, TaskUnavailable) as error:
        raise UserError(str(error.args[0])) from error
    if options.output.exists() and not options.output.is_dir():
        raise UserError(f"--output {options.output} is not a folder.")
    try:
        path = write_summary(reports, options.output)
    except OSError as error:
        raise UserError(f"No report can be written to {options.output}: {error.strerror}.") from error
    for name in sorted({entry.competition_id for entry in entries}):
        if note := get_task(name).load(data_dir=options.data_dir).note:
            print(f"warning: {name}: {note}", file=sys.stderr)
    if options.json:
        write_json(summary(reports))
        return 0
    totals = {key: value for key, value in summary(reports).items() if key != "competition_reports"}
    out = console()
    for key, value in totals.items():
        out.print(f"{key.replace('_', ' ')}: {value}", markup=False, highlight=False)
    out.print(f"written to {path}", markup=False, highlight=False, soft_wrap=True)
    return 0
