"""OpenVaccine: how fast does each base of an RNA molecule degrade?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import aligned, require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import write_csv
from mle_gym.tasks.mlebench.imitate import hex_id

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")
SCORED = ("reactivity", "deg_Mg_pH10", "deg_Mg_50C")
LENGTH, SCORED_LENGTH = 107, 68


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


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Random hairpins; unpaired bases degrade, A and G more than C and U, and neighbours alike."""
    rows = {"tiny": 240, "small": 900}[size]
    molecules = []
    for index in range(rows):
        sequence, structure = _hairpins(rng, LENGTH)
        end = structure.rindex(")")
        outer = ["H" if 4 < place < end else "E" for place in range(LENGTH)]
        loops = "".join("S" if mark in "()" else loop for mark, loop in zip(structure, outer, strict=True))
        clean = rng.random() < 0.7
        noise = 0.12 if clean else 0.5
        loose = np.array([mark == "." for mark in structure[: SCORED_LENGTH + 1]], dtype=np.float64)
        base = np.array([{"A": 1.0, "G": 0.85, "C": 0.45, "U": 0.5}[letter] for letter in sequence[:SCORED_LENGTH]])
        open_ = 0.6 * loose[:-1] + 0.2 * loose[1:] + 0.2 * np.concatenate([[1.0], loose[:-2]])
        values = {
            target: (base * open_ * gain + 0.1 + noise * rng.normal(0, 1, SCORED_LENGTH)).round(4).tolist()
            for target, gain in zip(TARGETS, (1.0, 1.1, 1.2, 0.9, 0.9), strict=True)
        }
        errors = {
            error: (noise * rng.uniform(0.5, 1.5, SCORED_LENGTH)).round(4).tolist()
            for error in ("reactivity_error", *(f"deg_error_{target[4:]}" for target in TARGETS[1:]))
        }
        molecules.append(
            {
                "index": index,
                "id": f"id_{hex_id(rng, 9)}",
                "sequence": sequence,
                "structure": structure,
                "predicted_loop_type": loops,
                "signal_to_noise": round(float(rng.uniform(3, 9) if clean else rng.uniform(0, 1)), 3),
                "SN_filter": float(clean),
                "seq_length": LENGTH,
                "seq_scored": SCORED_LENGTH,
                **errors,
                **values,
            }
        )
    shown = ("index", "id", "sequence", "structure", "predicted_loop_type", "seq_length", "seq_scored")
    unlabelled = [{name: molecule[name] for name in shown} for molecule in molecules[:4]]
    for name, part in (("train", molecules), ("test", unlabelled)):
        (raw / f"{name}.json").write_text("".join(json.dumps(molecule) + "\n" for molecule in part))
    sample = pd.DataFrame({"id_seqpos": [f"{unlabelled[0]['id']}_{place}" for place in range(LENGTH)]})
    write_csv(sample.assign(**dict.fromkeys(TARGETS, 0.0)), raw / "sample_submission.csv")


def _hairpins(rng: np.random.Generator, length: int) -> tuple[str, str]:
    """A sequence and its fold: stems of complementary bases around loops, with loose bases between and after."""
    pairs = {"A": "U", "U": "A", "G": "C", "C": "G"}
    sequence, structure = "GGAAA", "....."
    while len(sequence) < length - 25:
        stem, loop, gap = (int(size) for size in rng.integers((3, 3, 1), (9, 9, 6)))
        bases = "".join(rng.choice(list("ACGU"), stem + loop + gap, p=(0.3, 0.22, 0.3, 0.18)))
        paired = "".join(pairs[base] for base in reversed(bases[:stem]))
        sequence += bases[: stem + loop] + paired + bases[stem + loop :]
        structure += "(" * stem + "." * loop + ")" * stem + "." * gap
    tail = "".join(rng.choice(list("ACGU"), length))
    sequence, cut = (sequence + tail)[:length], min(len(structure), length)
    return sequence, structure[:cut] + "." * (length - cut)
