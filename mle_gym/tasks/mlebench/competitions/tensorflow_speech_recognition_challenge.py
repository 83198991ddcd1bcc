"""TensorFlow Speech Recognition Challenge: which word does a clip of one second hold?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, wav_bytes
from mle_gym.tasks.mlebench.metrics import accuracy

_WORDS = (
    "yes no up down left right on off stop go bed bird cat dog eight five four happy house marvin nine one seven "
    "sheila six three tree two wow zero"
)
_NOISES = "doing_the_dishes dude_miaowing exercise_bike pink_noise running_tap white_noise"
_RATE = 16_000


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Clips of a quarter of a second: a word is a buzz whose two formants glide, in voices of different pitch."""
    import py7zr

    each, length = {"tiny": 8, "small": 22}[size], _RATE // 4
    glides = rng.uniform((250, 250, 900, 900), (900, 900, 3200, 3200), (len(_WORDS.split()), 4))
    speakers = [(hex_id(rng, 8), rng.uniform(90, 240), rng.normal(1, 0.05)) for _ in range(3 * each)]
    time, part = np.arange(length) / _RATE, np.linspace(0, 1, length)
    with py7zr.SevenZipFile(raw / "train.7z", "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        for word, (low, low_end, high, high_end) in zip(_WORDS.split(), glides, strict=True):
            for number in range(each):
                name, pitch, tract = speakers[rng.integers(len(speakers))]
                sound = rng.normal(0, 0.03, length)
                for first, last, loud in ((low, low_end, 1.0), (high, high_end, 0.6)):
                    glide = tract * (first + (last - first) * part) * np.exp(rng.normal(0, 0.06))
                    sound += loud * np.sin(2 * np.pi * np.cumsum(glide) / _RATE)
                sound *= (1 + 0.7 * np.sign(np.sin(2 * np.pi * pitch * time))) * np.sin(np.pi * part) ** 0.5
                sound += rng.normal(0, rng.uniform(0.02, 0.3), length)
                archive.writestr(wav_bytes(0.2 * sound, _RATE), f"train/audio/{word}/{name}_nohash_{number}.wav")
        for noise in _NOISES.split():
            sound = (
                np.cumsum(rng.normal(0, 0.02, 4 * length)) if noise == "pink_noise" else rng.normal(0, 0.1, 4 * length)
            )
            archive.writestr(wav_bytes(sound - sound.mean(), _RATE), f"train/audio/_background_noise_/{noise}.wav")
