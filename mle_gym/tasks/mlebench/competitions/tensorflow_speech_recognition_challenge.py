"""TensorFlow Speech Recognition Challenge: which word does a clip of one second hold?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Accuracy."""
    return accuracy(submission, answers, "fname", "label")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the clips and give them new names; the label is the name of a clip's folder."""
    import py7zr

    with py7zr.SevenZipFile(raw / "train.7z") as archive:
        archive.extractall(raw)
    clips = sorted((raw / "train" / "audio").rglob("*.wav"), key=lambda clip: f"{clip.parent.name}_{clip.name}")
    train, test = split_rows(clips, test_size=0.1)
    copy_files((clip, public / "train" / "audio" / clip.parent.name / clip.name) for clip in train)
    names = [f"clip_{number:08d}.wav" for number in range(len(test))]
    copy_files((clip, public / "test" / "audio" / name) for clip, name in zip(test, names, strict=True))
    answers = pd.DataFrame({"fname": names, "label": [clip.parent.name for clip in test]})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(label="silence"), public / "sample_submission.csv")
