"""PetFinder.my - Pawpularity Contest: how popular a pet's photo is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, write_csv
from mle_gym.tasks.mlebench.imitate import ellipse, hex_id, image_bytes
from mle_gym.tasks.mlebench.regression import matched, prepare_table, rmse

FLAGS = (
    *("Subject Focus", "Eyes", "Face", "Near", "Action", "Accessory", "Group"),
    *("Collage", "Human", "Occlusion", "Info", "Blur"),
)
SHARES = (0.03, 0.77, 0.9, 0.86, 0.01, 0.07, 0.13, 0.05, 0.17, 0.17, 0.06, 0.07)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Root mean squared error; scores outside of [1, 100] are refused."""
    return rmse(matched(submission, answers, "Id", "Pawpularity", low=1.0, high=100.0))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the photos; the sample submission is random."""
    train, test = prepare_table(raw, public, private, "Id", ("Pawpularity",), ("Pawpularity",), 0.0)
    random = np.random.default_rng(0).uniform(1, 100, len(test)).round(2)
    write_csv(test[["Id"]].assign(Pawpularity=random), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        copy_files((raw / "train" / f"{pet}.jpg", public / name / f"{pet}.jpg") for pet in part["Id"])


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Round pets in front of a wall: large, bright and sharp ones are liked, so are looks at the camera."""
    rows = {"tiny": 260, "small": 1200}[size]
    flags = (rng.random((rows, len(FLAGS))) < np.array(SHARES)).astype(int)
    radius, light, blur = rng.uniform(8, 26, rows), rng.uniform(60, 230, rows), rng.uniform(0, 1, rows)
    flags[:, FLAGS.index("Near")] = radius > 14
    flags[:, FLAGS.index("Blur")] = blur > 0.85
    liked = 5 + 1.1 * radius + 0.11 * light - 16 * blur + 6 * flags[:, FLAGS.index("Eyes")]
    score = np.clip(np.round(liked * rng.lognormal(0, 0.3, rows)), 1, 100).astype(int)
    pets = [hex_id(rng) for _ in range(rows)]
    (raw / "train").mkdir()
    for pet, r, bright, soft in zip(pets, radius, light, blur, strict=True):
        inside = ellipse((64, 64), tuple(rng.uniform(26, 38, 2)), (r, r * rng.uniform(0.8, 1.2)))
        coat, wall = rng.uniform(0.5, 1.0, 3) * bright, rng.uniform(60, 140, 3)
        edge = np.clip(0.5 + inside * (4 if soft > 0.5 else 25), 0, 1)[..., None]
        grain = rng.normal(0, 14 * (1 - soft), (64, 64, 3))
        (raw / "train" / f"{pet}.jpg").write_bytes(image_bytes(edge * coat + (1 - edge) * wall + grain, "JPEG"))
    table = pd.DataFrame({"Id": pets, **dict(zip(FLAGS, flags.T, strict=True)), "Pawpularity": score})
    table.to_csv(raw / "train.csv", index=False)
