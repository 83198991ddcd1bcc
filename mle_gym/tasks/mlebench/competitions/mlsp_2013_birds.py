"""MLSP 2013 Bird Classification: which of 19 species sing in a ten-second recording?"""

from __future__ import annotations

import io
import shutil
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, write_csv
from mle_gym.tasks.mlebench.frames import read_answers as read_table
from mle_gym.tasks.mlebench.imitate import image_bytes, words
from mle_gym.tasks.mlebench.metrics import binary_auc

_SPECIES = 19
_PICTURES = ("filtered_spectrograms", "segmentation_examples", "spectrograms", "supervised_segmentation")
_SEGMENTS = ("histogram_of_segments", "segment_features", "segment_rectangles")


def read_answers(path: Path) -> pd.DataFrame:
    """The answers with a column for the recording, which is kept whole by the reward firewall."""
    answers = read_table(path)
    return answers.assign(recording=answers["Id"] // 100)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under one ROC curve of all pairs of recording and species."""
    return binary_auc(submission, answers, "Id", "Probability")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of Kaggle's training recordings (fold 0) and number what is left anew."""
    source = extract(raw / "mlsp_contest_dataset.zip", raw) / "mlsp_contest_dataset"
    essential, extra = source / "essential_data", source / "supplemental_data"
    shown, shown_extra = public / "essential_data", public / "supplemental_data"
    folds = read_csv(essential / "CVfolds_2.txt").query("fold == 0").reset_index(drop=True)
    folds.loc[folds.sample(frac=0.2, random_state=0).index, "fold"] = 1
    number = {int(old): new for new, old in enumerate(folds["rec_id"])}
    folds["rec_id"] = folds.index
    tested = set(folds.index[folds["fold"] == 1])
    write_csv(folds, shown / "CVfolds_2.txt")
    names = read_csv(essential / "rec_id2filename.txt")
    names = names[names["rec_id"].isin(number)]
    names = names.assign(rec_id=names["rec_id"].map(number))
    write_csv(names, shown / "rec_id2filename.txt")

    lines, pairs = ["rec_id,[labels]"], []
    for recording, labels in _lines(essential / "rec_labels_test_hidden.txt", number):
        if recording in tested:
            species = {int(label) for label in labels.split(",") if label}
            pairs += [(recording * 100 + k, int(k in species)) for k in range(_SPECIES)]
            labels = "?"
        lines.append(f"{recording},{labels}" if labels else str(recording))
    _write(shown / "rec_labels_test_hidden.txt", lines)
    write_csv(pd.DataFrame(pairs, columns=["Id", "Probability"]), private / "answers.csv")
    ids = [recording * 100 + k for recording in sorted(tested) for k in range(_SPECIES)]
    write_csv(pd.DataFrame({"Id": ids, "Probability": 0}), public / "sample_submission.csv")

    shutil.copyfile(essential / "species_list.txt", shown / "species_list.txt")
    copy_files((essential / "src_wavs" / f"{n}.wav", shown / "src_wavs" / f"{n}.wav") for n in names["filename"])
    for folder in _PICTURES:
        pictures = [f"{name}.bmp" for name in names["filename"]]
        if folder == "segmentation_examples":  # made for a few recordings only
            pictures = [picture for picture in pictures if (extra / folder / picture).exists()]
        copy_files((extra / folder / picture, shown_extra / folder / picture) for picture in pictures)
    copy_files((extra / f"segment_{name}.bmp", shown_extra / f"segment_{name}.bmp") for name in ("clusters", "mosaic"))
    for name in _SEGMENTS:  # all three get the first one's header
        rows = [f"{recording},{values}" for recording, values in _lines(extra / f"{name}.txt", number)]
        _write(shown_extra / f"{name}.txt", ["rec_id,[histogram of segment features]", *rows])


def _lines(path: Path, number: dict[int, int]) -> Iterator[tuple[int, str]]:
    """Yield (new number, rest of the line) of the recordings that are kept."""
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        recording, _, rest = line.partition(",")
        if int(recording) in number:
            yield number[int(recording)], rest


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """A quarter of a second at 16 kHz: each species whistles at a pitch of its own in noise of its own loudness."""
    kept, rest = {"tiny": (150, 30), "small": (420, 60)}[size]
    rows, samples, rate = kept + rest, 4096, 16_000
    pitches = np.geomspace(900, 6500, _SPECIES)
    common = rng.permutation(np.geomspace(0.3, 0.04, _SPECIES))
    labels = rng.random((rows, _SPECIES)) < common
    fold = rng.permutation(np.repeat([0, 1], (kept, rest)))
    codes = [word[:4].upper() for word in words(rng, _SPECIES)]
    lines: dict[str, list[str]] = {
        "essential_data/CVfolds_2": ["rec_id,fold", *(f"{row},{f}" for row, f in enumerate(fold))],
        "essential_data/rec_id2filename": ["rec_id,filename"],
        "essential_data/rec_labels_test_hidden": ["rec_id,[labels]"],
        "essential_data/species_list": ["class_id,code,species", *(f"{k},{c},{c}" for k, c in enumerate(codes))],
        "supplemental_data/histogram_of_segments": ["rec_id,[histogram of segment features]"],
        "supplemental_data/segment_features": ["rec_id,segment_id,[feature vector]"],
        "supplemental_data/segment_rectangles": ["rec_id,[rectangle coords]"],
    }
    time = np.arange(samples) / rate
    with zipfile.ZipFile(raw / "mlsp_contest_dataset.zip", "w", zipfile.ZIP_DEFLATED) as archive:

        def add(path: str, data: bytes) -> None:
            archive.writestr(f"mlsp_contest_dataset/{path}", data)

        for row, species in enumerate(labels):
            date = f"20{rng.integers(9, 11):02d}0{rng.integers(5, 9)}{row % 28 + 1:02d}"
            name = f"PC{rng.integers(1, 19)}_{date}_{rng.integers(4, 10):02d}0000_{row:04d}"
            sound = rng.normal(0.0, rng.uniform(0.05, 0.25), samples)
            for k in np.flatnonzero(species | (rng.random(_SPECIES) < 0.03)):
                strength = rng.uniform(0.01, 0.09) * np.exp(-(((time - rng.uniform(0.05, 0.2)) / 0.05) ** 2))
                sound += strength * np.sin(2 * np.pi * pitches[k] * (time + 0.1 * time**2))
            lines["essential_data/rec_id2filename"].append(f"{row},{name}")
            known = "".join(f",{k}" for k in np.flatnonzero(species)) if fold[row] == 0 else ",?"
            lines["essential_data/rec_labels_test_hidden"].append(f"{row}{known}")
            power = np.abs(np.fft.rfft(sound.reshape(32, 128) * np.hanning(128), axis=1)[:, 1:]).T[::-1]
            loud = power >= min(3.0 * np.median(power), power.max())
            histogram = np.histogram(np.nonzero(loud)[0], bins=20, range=(0, 64))[0]
            lines["supplemental_data/histogram_of_segments"].append(f"{row},{','.join(map(str, histogram))}")
            features = ",".join(f"{value:.4f}" for value in power.reshape(8, 8, 32).mean(axis=(1, 2)))
            lines["supplemental_data/segment_features"].append(f"{row},0,{features}")
            box = ",".join(str(int(edge(axis))) for axis in np.nonzero(loud) for edge in (np.min, np.max))
            lines["supplemental_data/segment_rectangles"].append(f"{row},{box}")
            add(f"essential_data/src_wavs/{name}.wav", _wav(sound, rate))
            grey = 255 * power / power.max()
            add(f"supplemental_data/spectrograms/{name}.bmp", image_bytes(grey, "BMP"))
            add(f"supplemental_data/filtered_spectrograms/{name}.bmp", image_bytes(grey * loud, "BMP"))
            add(f"supplemental_data/supervised_segmentation/{name}.bmp", image_bytes(255 * loud, "BMP"))
            if row % 30 == 0:
                add(f"supplemental_data/segmentation_examples/{name}.bmp", image_bytes(255 * loud, "BMP"))
        for name in ("clusters", "mosaic"):
            add(f"supplemental_data/segment_{name}.bmp", image_bytes(rng.uniform(0, 255, (64, 64)), "BMP"))
        for path, text in lines.items():
            add(f"{path}.txt", "".join(f"{line}\n" for line in text).encode())


def _wav(sound: NDArray[np.float64], rate: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()
