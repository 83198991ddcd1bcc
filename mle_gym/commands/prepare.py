"""``mle-gym prepare``: real data of MLE-bench's competitions."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, parse, resolve_id

__all__ = ["main"]


@dataclass(frozen=True)
class Options:
    """Download and prepare competitions of MLE-bench, or prepare files that are there already.

    A competition that is prepared is left alone; an interrupted download goes on. Needs a Kaggle account unless --raw
    is given. The exit code is 1 when a competition could not be prepared; the others are made all the same.
    """

    ids: Annotated[Positional[tuple[str, ...]], arg(metavar="ID")] = ()
    """Competitions."""
    lite: bool = False
    """The 22 of MLE-bench Lite (158 GB)."""
    all: bool = False
    """All 75 (3.3 TB)."""
    raw: Path | None = None
    """A folder or zip file with Kaggle's files of the one competition named."""
    data_dir: Path | None = None
    """Prepare below this folder; by default $MLE_GYM_DATA or ~/.cache/mle_gym."""
    again: bool = False
    """Prepare anew what is prepared already."""


def main(argv: Sequence[str]) -> int:
    """Prepare competitions."""
    from mle_gym.tasks.mlebench.catalogue import catalogue
    from mle_gym.tasks.mlebench.download import NoCredentials
    from mle_gym.tasks.mlebench.prepare import ChecksumMismatch, prepare
    from mle_gym.tasks.mlebench.store import differences
    from mle_gym.tasks.registry import get_task
    from mle_gym.tasks.task import MissingDependency, TaskUnavailable

    options = parse(Options, argv, command="prepare")
    names = [get_task(resolve_id(name)).name for name in options.ids]
    for wanted, split in ((options.lite, "lite"), (options.all, "split75")):
        names += [name for name, facts in catalogue().items() if wanted and split in facts.splits and name not in names]
    if not names:
        raise UserError("Name competitions, or give --lite or --all; `mle-gym tasks --tag mlebench` lists them.")
    if options.raw is not None and len(names) != 1:
        raise UserError(f"--raw holds the files of one competition and {len(names)} are named.")
    failed = 0
    for name in names:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ChecksumMismatch)
            try:
                folder = prepare(name, options.raw, options.data_dir, again=options.again, progress=sys.stderr.isatty())
            except TaskUnavailable as error:
                if len(names) == 1 or isinstance(error, NoCredentials | MissingDependency):
                    raise UserError(str(error)) from error
                failed += 1
                print(f"mle-gym: {error}", file=sys.stderr)
                continue
        for warning in caught:
            print(f"warning: {warning.message}", file=sys.stderr)
        note = differences(folder)
        print(f"{name}: {folder}" + (f" ({len(note)} files differ from MLE-bench's)" if note else ""))
    return 1 if failed else 0
