"""Explore Multi-Label Classification with an Enzyme Substrate Dataset: which enzymes act on a molecule?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.regression import prepare_table

TARGETS = ("EC1", "EC2")

DESCRIPTORS = (
    *("BertzCT", "Chi1", "Chi1n", "Chi1v", "Chi2n", "Chi2v", "Chi3v", "Chi4n", "EState_VSA1", "EState_VSA2"),
    *("ExactMolWt", "FpDensityMorgan1", "FpDensityMorgan2", "FpDensityMorgan3", "HallKierAlpha", "HeavyAtomMolWt"),
    *("Kappa3", "MaxAbsEStateIndex", "MinEStateIndex", "NumHeteroatoms", "PEOE_VSA10", "PEOE_VSA14", "PEOE_VSA6"),
    *("PEOE_VSA7", "PEOE_VSA8", "SMR_VSA10", "SMR_VSA5", "SlogP_VSA3", "VSA_EState9", "fr_COO", "fr_COO2"),
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean area under the ROC curve of EC1 and EC2; any finite numbers rank."""
    from sklearn.metrics import roc_auc_score

    require_columns(submission, "id", *TARGETS)
    rows = aligned(submission, answers, "id")
    for target in TARGETS:
        numbers(submission, target)
        if answers[target].nunique() < 2:
            raise InvalidSubmission(f"Column {target!r}: the answers hold one class only, so there is no ROC curve.")
    return float(np.mean([roc_auc_score(answers[target], numbers(rows, target)) for target in TARGETS]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the molecules."""
    hidden = [f"EC{number}" for number in range(1, 7)]
    prepare_table(raw, public, private, "id", hidden, TARGETS, 0.5)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Descriptors that share a few hidden properties of a molecule, which also decide on the enzymes."""
    rows = {"tiny": 600, "small": 4000}[size]
    hidden = rng.normal(0, 1, (rows, 5))
    weights = rng.normal(0, 1, (5, len(DESCRIPTORS)))
    values = np.exp(0.5 * (hidden @ weights + rng.normal(0, 1, (rows, len(DESCRIPTORS)))))
    table = pd.DataFrame({"id": np.arange(rows), **dict(zip(DESCRIPTORS, values.round(6).T, strict=True))})
    for name in ("NumHeteroatoms", "fr_COO", "fr_COO2"):
        table[name] = table[name].round().clip(0, 12).astype(int)
    for number, base in enumerate((0.7, 1.4, -0.8, -1.4, -1.8, -1.7), start=1):
        logit = base + hidden @ rng.normal(0, 0.6, 5)
        table[f"EC{number}"] = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(int)
    table.to_csv(raw / "train.csv", index=False)
