"""OpenVaccine: how fast does each base of an RNA molecule degrade?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import write_csv

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")
SCORED = ("reactivity", "deg_Mg_pH10", "deg_Mg_50C")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean of the root mean squared errors of three of the five targets.

    Which predictions are scored is decided by their place in the file, before both tables are sorted by id: in a file
    whose rows stand in another order than the answers', wrong rows are compared.
    """
    require_columns(submission, "id_seqpos", *SCORED, *TARGETS)
    aligned(submission, answers, "id_seqpos")
    keep = answers["keep"].to_numpy(dtype=np.bool_)
    mine = submission["id_seqpos"].argsort(kind="stable").to_numpy()
    theirs = answers["id_seqpos"].argsort(kind="stable").to_numpy()
    mine, theirs = mine[keep[mine]], theirs[keep[theirs]]
    errors = []
    for column in SCORED:
        values = pd.to_numeric(submission[column], errors="coerce").to_numpy(dtype=np.float64)[mine]
        if not np.isfinite(values).all():
            row = int(mine[~np.isfinite(values)].min())
            cell = say(submission[column].iloc[row])
            raise InvalidSubmission(f"Column {column!r}, row {row + 1}: {cell}; expected a finite number.")
        errors.append(np.sqrt(np.mean((answers[column].to_numpy()[theirs] - values) ** 2)))
    return float(np.mean(errors))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the molecules, all from those with little noise."""
    whole: pd.DataFrame = pd.read_json(raw / "train.json", lines=True)
    shown: list[str] = pd.read_json(raw / "test.json", lines=True).columns.tolist()
    clean = whole[whole["SN_filter"] > 0]
    inside = whole.index.isin(clean.sample(n=int(len(whole) * 0.1), random_state=0).index)
    train, test = whole[~inside].copy(), whole[inside]
    rows: list[dict[str, Any]] = []
    for molecule in test.to_dict("records"):
        for place in range(molecule["seq_length"]):
            measured = place < molecule["seq_scored"]
            values = {target: molecule[target][place] if measured else 0.0 for target in TARGETS}
            rows.append({"id_seqpos": f"{molecule['id']}_{place}", **values, "keep": measured})
    answers = pd.DataFrame(rows)
    write_csv(answers, private / "test.csv", float_format="%.10f")
    sample = answers[["id_seqpos"]].assign(**dict.fromkeys(TARGETS, 0.0))
    write_csv(sample, public / "sample_submission.csv", float_format="%.10f")
    for name, part in (("train", train), ("test", test[shown].copy())):
        part["index"] = range(len(part))
        part.to_json(public / f"{name}.json", orient="records", lines=True)
