"""Multi-modal Gesture Recognition: which gestures does a recording show, in which order?"""

from __future__ import annotations

import random
import tarfile
from pathlib import Path, PurePosixPath

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, edit_distances

COPIED = (
    *(f"training{part}.tar.gz" for part in (1, 2, 3)),
    *(f"validation{part}.tar.gz" for part in (1, 2, 3)),
    "devel01-40.7z",
    "valid_all_files_combined.7z",
    "sample_code_mmrgc.zip",
)


def _gestures(table: pd.DataFrame) -> list[list[int]]:
    """Return the sequences as lists of labels."""
    sequences = []
    for row, cell in enumerate(as_text(table["Sequence"])):
        try:
            sequences.append([int(label) for label in cell.split()])
        except ValueError:
            raise InvalidSubmission(
                f"Column 'Sequence', row {row + 1}: {say(table['Sequence'].iloc[row])}; "
                "expected labels from 1 to 20 with spaces between them."
            ) from None
    return sequences


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Levenshtein distances of all recordings together, divided by the number of gestures in the answers."""
    require_columns(submission, "Id", "Sequence")
    found, expected = same_order(submission, answers, "Id")
    guesses, truth = _gestures(submission), _gestures(answers)
    distances = edit_distances([truth[row] for row in expected], [guesses[row] for row in found])
    return float(distances.sum() / sum(map(len, truth)))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the fourth archive of training recordings; the unlabelled validation ones stay as they are."""
    with tarfile.open(raw / "training4.tar.gz") as archive:
        members = [PurePosixPath(name) for name in archive.getnames()]
    recordings = [path for path in members if path.suffix == ".zip" and path.parent == PurePosixPath(".")]
    test = sorted(path.stem[-4:] for path in recordings)
    labelled = read_csv(raw / "training.csv", dtype={"Id": str, "Sequence": str})
    chosen = labelled["Id"].isin(test)
    write_csv(labelled[~chosen], public / "training.csv")
    write_csv(labelled[chosen], private / "test.csv")
    write_csv(pd.DataFrame({"Id": test}), public / "test.csv")
    shuffle = random.Random(0)
    guesses = [" ".join(map(str, shuffle.sample(range(1, 21), 20))) for _ in test]
    write_csv(pd.DataFrame({"Id": test, "Sequence": guesses}), public / "randomPredictions.csv")
    copy_files([(raw / "training4.tar.gz", public / "test.tar.gz"), *((raw / name, public / name) for name in COPIED)])
