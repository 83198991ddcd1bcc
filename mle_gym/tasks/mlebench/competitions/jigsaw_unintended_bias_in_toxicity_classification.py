"""Jigsaw Unintended Bias in Toxicity Classification: is a comment toxic, whoever it speaks of?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.probabilities import columns_auc

IDENTITIES = (
    "male",
    "female",
    "homosexual_gay_or_lesbian",
    "christian",
    "jewish",
    "muslim",
    "black",
    "white",
    "psychiatric_or_mental_illness",
)
OTHERS = (
    *("transgender", "other_gender", "heterosexual", "bisexual", "other_sexual_orientation", "hindu", "buddhist"),
    *("atheist", "other_religion", "asian", "latino", "other_race_or_ethnicity", "physical_disability"),
    *("intellectual_or_learning_disability", "other_disability"),
)
KINDS = ("severe_toxicity", "obscene", "sexual_explicit", "identity_attack", "insult", "threat")
POWER = -5.0


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the overall AUC and of three power means over identities of AUCs; predictions count as >= 0.5 or not."""
    column = "toxicity" if "prediction" not in submission.columns and "toxicity" in submission.columns else "prediction"
    require_columns(submission, "id", column)
    if "toxicity" in submission.columns and column == "prediction":
        raise InvalidSubmission("The submission has both columns 'prediction' and 'toxicity'; expected one of them.")
    numbers(submission, column, allow_nan=True, allow_inf=True)
    rows = aligned(submission, answers, "id")
    guess = (numbers(rows, column, allow_nan=True, allow_inf=True) >= 0.5).astype(np.int64)
    toxic = (answers["toxicity"].to_numpy() >= 0.5).astype(np.int64)
    means = [_auc(toxic, guess, np.ones(len(toxic), dtype=np.bool_), "toxicity")]
    members = [(answers[name].to_numpy(dtype=np.float64) >= 0.5) for name in IDENTITIES]
    for side in (None, 1, 0):
        # Within a group; its harmless and others' toxic comments; its toxic and others' harmless comments.
        parts = [member if side is None else (toxic == 1 - side) == member for member in members]
        aucs = np.array([_auc(toxic, guess, part, name) for part, name in zip(parts, IDENTITIES, strict=True)])
        means.append(float(np.mean(aucs**POWER) ** (1 / POWER)))
    return float(np.mean(means))


def _auc(toxic: NDArray[np.int64], guess: NDArray[np.int64], part: NDArray[np.bool_], name: str) -> float:
    return columns_auc(toxic[part, None], guess[part, None].astype(np.float64), [name])


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Kaggle's private test set, which was published later with its labels."""
    shutil.copyfile(raw / "test_private_expanded.csv", private / "test.csv")
    shutil.copyfile(raw / "train.csv", public / "train.csv")
    test = read_csv(raw / "test_private_expanded.csv", usecols=["id", "comment_text"])
    write_csv(test, public / "test.csv")
    write_csv(test[["id"]].assign(prediction=0.0), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Comments of made-up words; rude words make them toxic, and some groups are named in toxic ones more often."""
    train, test = {"tiny": (1000, 700), "small": (6000, 3000)}[size]
    vocabulary = words(rng, 440 + 4 * len(IDENTITIES))
    names = {group: [vocabulary.pop() for _ in range(4)] for group in IDENTITIES}
    rude = [vocabulary.pop() for _ in range(40)]
    bias = rng.uniform(0.15, 0.45, len(IDENTITIES))
    rows: list[dict[str, Any]] = []
    for _ in range(train + test):
        toxic = rng.random() < 0.3
        groups = rng.random(len(IDENTITIES)) < (bias if toxic else 0.2)
        spoken = sentence(rng, vocabulary, int(rng.integers(5, 40))).split()
        spoken += [rude[place] for place in rng.integers(0, len(rude), rng.poisson(1.8 if toxic else 0.12))]
        spoken += [names[group][rng.integers(4)] for group, there in zip(IDENTITIES, groups, strict=True) if there]
        level = round(float(rng.beta(6, 4) * 0.5 + 0.45 if toxic else rng.beta(1, 4) * 0.5), 6)
        kinds = {kind: round(level * float(rng.random()), 6) for kind in KINDS}
        asked = rng.random() < 0.9
        shares = dict.fromkeys(OTHERS, 0.0) | dict(zip(IDENTITIES, np.where(groups, 1.0, 0.0), strict=True))
        rows.append(
            {
                "comment_text": " ".join(str(word) for word in rng.permutation(spoken)).capitalize() + ".",
                "created_date": f"2017-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d} 10:00:00.000000+00",
                "publication_id": int(rng.integers(2, 60)),
                "parent_id": float(rng.integers(10**5, 10**6)) if rng.random() < 0.5 else np.nan,
                "article_id": int(rng.integers(2000, 9000)),
                "rating": "rejected" if toxic and rng.random() < 0.3 else "approved",
                **{mood: int(rng.poisson(0.3)) for mood in ("funny", "wow", "sad", "likes", "disagree")},
                "toxicity": level,
                **kinds,
                **(shares if asked else dict.fromkeys(shares, np.nan)),
                "identity_annotator_count": 4 if asked else 0,
                "toxicity_annotator_count": int(rng.integers(4, 11)),
            }
        )
    whole = pd.DataFrame(rows)
    labelled, hidden = whole[:train].rename(columns={"toxicity": "target"}), whole[train:]
    order = ["target", "comment_text", *KINDS]
    labelled = labelled[[*order, *labelled.columns.difference(order, sort=False)]]
    for table, start, name in ((labelled, 59_848, "train"), (hidden, 7_097_320, "test_private_expanded")):
        write_csv(table.assign(id=range(start, start + len(table)))[["id", *table.columns]], raw / f"{name}.csv")
