"""The ICML 2013 Whale Challenge: does a right whale call in two seconds of underwater sound?"""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import extract, write_csv, zip_files
from mle_gym.tasks.mlebench.metrics import binary_auc

_RATE = 2000


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "clip", "probability")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Keep the first two days, hold out the others; clips are numbered anew in the order of their times."""
    clips = sorted(extract(raw / "train2.zip", raw).joinpath("train2").iterdir())
    days = sorted({clip.name.split("_")[0] for clip in clips})[:2]
    train = [clip for clip in clips if clip.name.split("_")[0] in days]
    test = [clip for clip in clips if clip.name.split("_")[0] not in days]
    shown = [re.sub(r"TRAIN\d+", f"TRAIN{number}", clip.name) for number, clip in enumerate(train)]
    hidden = [f"{clip.name.split('TRAIN')[0]}Test{number}.aif" for number, clip in enumerate(test)]
    for folder, sources, names in (("train2", train, shown), ("test2", test, hidden)):
        members = ((clip, f"{folder}/{name}") for clip, name in zip(sources, names, strict=True))
        zip_files(public / f"{folder}.zip", members, compression=zipfile.ZIP_DEFLATED)
    answers = pd.DataFrame({"clip": hidden, "probability": [int(clip.stem.endswith("_1")) for clip in test]})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(probability=0), public / "sampleSubmission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Two seconds at 2 kHz of deep noise over four days; a call sweeps upwards from 80 to 200 Hz."""
    daily = {"tiny": 40, "small": 280}[size]
    number = 0
    with zipfile.ZipFile(raw / "train2.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for day in ("20090328", "20090329", "20090330", "20090331"):
            for second in np.sort(rng.choice(86_400, daily, replace=False)):
                block, rest = divmod(int(second), 900)
                clock = f"{block // 4:02d}{block % 4 * 15:02d}00_{rest:03d}s{rng.integers(10)}ms"
                label = int(rng.random() < 0.35)
                name = f"train2/{day}_{clock}_TRAIN{number}_{label}.aif"
                archive.writestr(name, _aiff(_clip(rng, bool(label))))
                number += 1
    with zipfile.ZipFile(raw / "test2.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for clip in range(4):
            name = f"test2/20090401_000000_{clip:03d}s0ms_Test{clip}.aif"
            archive.writestr(name, _aiff(_clip(rng, clip % 2 == 1)))


def _clip(rng: np.random.Generator, call: bool) -> NDArray[np.float64]:
    """Samples of 16 bits, shape ``(4000,)``."""
    time = np.arange(2 * _RATE) / _RATE
    noise = np.convolve(rng.normal(0.0, 60.0, 2 * _RATE + 7), np.ones(8) / 3, mode="valid")
    for real in (True, False):
        if real != call and (real or rng.random() < 0.6):
            continue
        # What is no call sweeps downwards: a passing ship, or another species.
        start, length = rng.uniform(0.1, 0.9), rng.uniform(0.6, 1.0)
        low, high = rng.uniform(70, 100), rng.uniform(150, 210)
        if not real:
            low, high = high, low
        into = time - start
        phase = 2 * np.pi * (low * into + (high - low) * into**2 / (2 * length))
        inside = (into > 0) & (into < length)
        noise += inside * np.sin(phase) * np.sin(np.pi * into / length) * rng.uniform(20.0, 140.0)
    return noise


def _aiff(samples: NDArray[np.float64]) -> bytes:
    """Encode one channel of 16-bit samples as AIFF."""
    # The rate is an 80-bit float: 2000 = 1.953125 * 2^10, with the leading one of the mantissa written out.
    exponent = int(np.floor(np.log2(_RATE)))
    rate = struct.pack(">HQ", 16383 + exponent, _RATE << (63 - exponent))
    common = struct.pack(">hIh", 1, len(samples), 16) + rate
    sound = struct.pack(">II", 0, 0) + samples.clip(-32768, 32767).astype(">i2").tobytes()
    chunks = b"COMM" + struct.pack(">I", len(common)) + common + b"SSND" + struct.pack(">I", len(sound)) + sound
    return b"FORM" + struct.pack(">I", len(chunks) + 4) + b"AIFF" + chunks
