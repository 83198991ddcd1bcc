"""HMS Harmful Brain Activity Classification: how do experts vote on an EEG?"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows, require_same_ids, row_sums
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.probabilities import probabilities, rounds_to_one

PATTERNS = ("seizure", "lpd", "gpd", "lrda", "grda", "other")
VOTES = tuple(f"{pattern}_vote" for pattern in PATTERNS)
CONSENSUS = ("Seizure", "LPD", "GPD", "LRDA", "GRDA", "Other")
SIDES = ("LL", "RL", "LP", "RP")
ELECTRODES = (
    *("Fp1", "F3", "C3", "P3", "F7", "T3", "T5", "O1", "Fz", "Cz"),
    *("Pz", "Fp2", "F4", "C4", "P4", "F8", "T4", "T6", "O2", "EKG"),
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over rows of the Kullback-Leibler divergence from the votes' shares."""
    from scipy.special import rel_entr  # type: ignore[import-untyped]

    require_columns(submission, "eeg_id", *VOTES)
    require_rows(submission, len(answers))
    values = probabilities(submission, VOTES)
    row_sums(values, rounds_to_one(values, 5))
    require_same_ids(submission, answers, "eeg_id")
    # Kaggle's metric sums over all columns; others may be there if they add nothing.
    for column in submission.columns.drop(["eeg_id", *VOTES]):
        extra = numbers(submission, column, low=0.0, high=1.0, allow_nan=True)
        values = np.column_stack([values, np.nan_to_num(extra)])
        both = f"the probabilities and the column {str(column)[:40]!r}, which is one too many,"
        row_sums(values, np.isclose(values.sum(axis=1), 1.0), both)
    # Ids repeat: the k-th row of an id in one table belongs to the k-th in the other.
    order = submission["eeg_id"].argsort(kind="stable").to_numpy()
    guess = values[order, : len(VOTES)].clip(1e-15, 1 - 1e-15)
    votes = answers.sort_values("eeg_id", kind="stable")[list(VOTES)].to_numpy(dtype=np.float64)
    return float(rel_entr(votes / votes.sum(axis=1, keepdims=True), guess).sum(axis=1).mean())


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the spectrograms with all that belongs to them."""
    whole = read_csv(raw / "train.csv")
    kept, _ = split_rows(whole["spectrogram_id"].unique(), test_size=0.1)
    inside = whole["spectrogram_id"].isin(kept)
    train, test = whole[inside], whole[~inside]
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["spectrogram_id", "eeg_id", "patient_id"]], public / "test.csv")
    votes = list(VOTES)
    gold = test[["eeg_id", *votes]].copy()
    gold[votes] = gold[votes].div(gold[votes].sum(axis=1), axis=0)
    write_csv(gold, private / "gold_submission.csv")
    write_csv(gold.assign(**dict.fromkeys(votes, 1 / 6)), public / "sample_submission.csv")
    shutil.copytree(raw / "example_figures", public / "example_figures")
    for name, part in (("train", train), ("test", test)):
        for kind in ("eeg", "spectrogram"):
            files = [f"{number}.parquet" for number in part[f"{kind}_id"].unique()]
            copy_files((raw / f"train_{kind}s" / file, public / f"{name}_{kind}s" / file) for file in files)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Each pattern has its rhythm, on one side or on both; experts see it through noise.

    The recordings last 5 s and not 50, and the spectrograms 20 s and not 10 minutes, which keeps the data small.
    """
    count = {"tiny": 36, "small": 70}[size]
    for folder in ("example_figures", "train_eegs", "train_spectrograms"):
        (raw / folder).mkdir()
    from PIL import Image

    Image.fromarray(rng.integers(0, 255, (24, 32), dtype=np.uint8)).save(raw / "example_figures" / "Sample01.pdf")
    numbers = rng.permutation(np.unique(rng.integers(10**6, 2**31, 4 * count))).tolist()
    rows: list[tuple[Any, ...]] = []
    for _ in range(count):
        spectrogram, patient = numbers.pop(), int(rng.integers(30, 65_000))
        main = rng.choice(len(PATTERNS), p=(0.2, 0.14, 0.15, 0.15, 0.17, 0.19))
        power = np.zeros((10, 4, 100))
        for part in range(2):
            eeg = numbers.pop()
            pattern = int(main if rng.random() < 0.8 else rng.integers(len(PATTERNS)))
            waves = _waves(rng, pattern)
            _write_parquet(raw / "train_eegs" / f"{eeg}.parquet", ELECTRODES, waves)
            power[5 * part : 5 * part + 5] = _power(rng, waves)
            votes = rng.multinomial(rng.integers(3, 16), 0.15 / len(PATTERNS) + 0.85 * np.eye(len(PATTERNS))[pattern])
            for sub in range(int(rng.integers(2, 5))):
                seen = votes if rng.random() < 0.7 else rng.permutation(votes)
                starts = (sub, float(2 * sub), spectrogram, 10 * part + sub, float(10 * part + 2 * sub))
                label = (numbers[0] + len(rows), patient, CONSENSUS[int(np.argmax(seen))])
                rows.append((eeg, *starts, *label, *seen))
        times = np.arange(1, 21, 2)[:, None]
        names = ["time", *(f"{side}_{0.59 + 0.195 * place:.2f}" for side in SIDES for place in range(100))]
        values = np.hstack([times, power.reshape(10, -1).round(1)])
        _write_parquet(raw / "train_spectrograms" / f"{spectrogram}.parquet", names, values)
    columns = ["eeg_id", "eeg_sub_id", "eeg_label_offset_seconds", "spectrogram_id", "spectrogram_sub_id"]
    columns += ["spectrogram_label_offset_seconds", "label_id", "patient_id", "expert_consensus", *VOTES]
    write_csv(pd.DataFrame(rows, columns=columns), raw / "train.csv")


def _waves(rng: np.random.Generator, pattern: int) -> NDArray[np.float64]:
    """Five seconds at 200 Hz, shape ``(1000, 20)``, in steps of 4 microvolts."""
    time = np.arange(1000)[:, None] / 200
    left = np.array([name[-1] in "13579" for name in ELECTRODES]) | (rng.random(20) < 0.1)
    sides = (left if rng.random() < 0.5 else ~left) if pattern in (1, 3) else np.ones(20, dtype=np.bool_)
    hertz = rng.uniform(*((4, 9), (1, 2), (1, 2), (1, 3), (1, 3), (9, 11))[pattern])
    phase = 2 * np.pi * (hertz * time + rng.uniform(0, 1) + rng.normal(0, 0.03, 20))
    wave = np.sin(phase) if pattern in (0, 3, 4, 5) else np.maximum(np.sin(phase), 0) ** 8
    size = (60.0, 90.0, 90.0, 45.0, 45.0, 8.0)[pattern] * rng.uniform(0.5, 1.5)
    noise = rng.normal(0, 3, (1000, 20)).cumsum(axis=0)
    noise -= noise.mean(axis=0)
    grid: NDArray[np.float64] = ((noise * 0.3 + size * wave * sides) / 4).round() * 4
    return grid


def _power(rng: np.random.Generator, waves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power in 100 bands up to 20 Hz for the four regions, five times, shape ``(5, 4, 100)``."""
    spectrum = np.abs(np.fft.rfft(waves[:, :16], axis=0))[3:103] ** 2 / 1000
    regions = spectrum.reshape(100, 4, 4).mean(axis=2).T
    power: NDArray[np.float64] = np.sqrt(regions)[None] * rng.uniform(0.8, 1.2, (5, 4, 100))
    return power


def _write_parquet(path: Path, names: Sequence[str], values: NDArray[np.float64]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    columns = {name: values[:, at].astype(np.int64 if name == "time" else np.float32) for at, name in enumerate(names)}
    # A spectrogram has 401 columns: without statistics and stored schemas a file is half as large.
    parquet.write_table(pa.table(columns), path, compression="zstd", write_statistics=False, store_schema=False)
