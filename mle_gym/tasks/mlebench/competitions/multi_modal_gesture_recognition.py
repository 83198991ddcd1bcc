"""Multi-modal Gesture Recognition: which gestures does a recording show, in which order?"""

# ruff: noqa: SIM905 - words in a row read better than a list of them
from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv, zip_files
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text, edit_distances

COPIED = (
    *(f"training{part}.tar.gz" for part in (1, 2, 3)),
    *(f"validation{part}.tar.gz" for part in (1, 2, 3)),
    "devel01-40.7z",
    "valid_all_files_combined.7z",
    "sample_code_mmrgc.zip",
)
GESTURES = (
    "vattene vieniqui perfetto furbo cheduepalle chevuoi daccordo seipazzo combinato freganiente ok cosatifarei basta "
    "prendere noncenepiu fame tantotempo buonissimo messidaccordo sonostufo"
).split()
FRAMES, PAUSE, FRAME_RATE, SOUND_RATE = 8, 3, 10, 1000


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


def _recording(rng: np.random.Generator, name: str, sequence: list[int], labelled: bool) -> bytes:
    """Return a recording's archive: joints of a skeleton that waves its hands, and a hum; each gesture has its own.

    There are no films in it, which take a video encoder.
    """
    from scipy.io import savemat, wavfile

    length = len(sequence) * (FRAMES + PAUSE) + PAUSE
    joints = np.tile(rng.normal((0.0, 0.0, 2.0), 0.4, (20, 3)), (length, 1, 1))
    hum = rng.normal(128.0, 12.0, length * SOUND_RATE // FRAME_RATE)
    spans = []
    for at, gesture in enumerate(sequence):
        start = PAUSE + at * (FRAMES + PAUSE)
        wave = np.sin(np.linspace(0.0, np.pi, FRAMES))[:, None] * (0.3 + 0.1 * rng.random())
        angle = 2.0 * np.pi * gesture / 20
        joints[start : start + FRAMES, 11] += wave * (np.cos(angle), np.sin(angle), 0.0)
        joints[start : start + FRAMES, 7] += wave * (gesture % 2, (gesture % 3) / 2, 0.0)
        heard = slice(start * SOUND_RATE // FRAME_RATE, (start + FRAMES) * SOUND_RATE // FRAME_RATE)
        time = np.arange(heard.stop - heard.start) / SOUND_RATE
        hum[heard] += 20.0 * np.sin(2.0 * np.pi * (80.0 + 15.0 * gesture) * time)
        spans.append((GESTURES[gesture - 1], start + 1, start + FRAMES))
    joints[:, (7, 11)] += rng.normal(0.0, 0.08, (length, 2, 3))
    frames = np.empty(length, dtype=[("Skeleton", object)])
    frames["Skeleton"] = [{"WorldPosition": position} for position in joints.round(3)]
    labels = np.array(spans if labelled else [], dtype=[("Name", object), ("Begin", object), ("End", object)])
    video = {"NumFrames": length, "FrameRate": FRAME_RATE, "Frames": frames, "Labels": labels}
    data, sound = io.BytesIO(), io.BytesIO()
    savemat(data, {"Video": video}, do_compression=True)
    wavfile.write(sound, SOUND_RATE, hum.clip(0, 255).astype(np.uint8))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        # The first 116 bytes are a remark, with the time of writing in it.
        file.writestr(zipfile.ZipInfo(f"{name}_data.mat"), b"MATLAB 5.0 MAT-file".ljust(116) + data.getvalue()[116:])
        file.writestr(zipfile.ZipInfo(f"{name}_audio.wav"), sound.getvalue())
    return archive.getvalue()


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Recordings of 8 to 14 gestures in a row; those of the fourth archive, which become the test, bear no labels."""
    import py7zr

    train, test, other = {"tiny": (8, 24, 2), "small": (40, 60, 4)}[size]
    counts = {f"training{part}": train for part in (1, 2, 3)} | {"training4": test}
    counts |= {f"validation{part}": other for part in (1, 2, 3)}
    rows = []
    number = 0
    for name, count in counts.items():
        with (
            gzip.GzipFile(raw / f"{name}.tar.gz", "wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            for _ in range(count):
                number += 1
                sequence = (rng.permutation(20)[: rng.integers(8, 15)] + 1).tolist()
                labelled = name in ("training1", "training2", "training3")
                content = _recording(rng, f"Sample{number:05}", sequence, labelled)
                member = tarfile.TarInfo(f"Sample{number:05}.zip")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
                if name.startswith("training"):
                    rows.append((f"{number:04}", " ".join(map(str, sequence))))
    write_csv(pd.DataFrame(rows, columns=["Id", "Sequence"]), raw / "training.csv")
    note = "In a stand-in this archive holds nothing else.\n"
    readme = raw / "README.txt"
    readme.write_text(note, encoding="utf-8")
    os.utime(readme, (0, 0))  # or the same seed would give archives with other bytes
    for name in ("devel01-40.7z", "valid_all_files_combined.7z"):
        with py7zr.SevenZipFile(raw / name, "w") as file:
            file.write(readme, "README.txt")
    zip_files(raw / "sample_code_mmrgc.zip", [(readme, "README.txt")])
    readme.unlink()
