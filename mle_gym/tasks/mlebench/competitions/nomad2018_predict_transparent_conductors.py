"""Nomad2018 Predicting Transparent Conductors: formation and band gap energy of a crystal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.checks import numbers, require_columns, require_rows
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, extract, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import write_zip

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over both energies of the root mean squared error of log(1 + energy); rows meet by position."""
    from sklearn.metrics import root_mean_squared_log_error

    require_columns(submission, *TARGETS)
    require_rows(submission, len(answers))
    # Energies between -1 and 0 have a logarithm too, but scikit-learn refused them when MLE-bench was released.
    predicted = [numbers(submission, target, low=0.0) for target in TARGETS]
    return float(np.mean([root_mean_squared_log_error(answers[t], p) for t, p in zip(TARGETS, predicted, strict=True)]))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the crystals and number both parts anew."""
    table = read_csv(extract(raw / "train.csv.zip", raw) / "train.csv")
    crystals = extract(raw / "train.zip", raw) / "train"
    parts = dict(zip(("train", "test"), split_rows(table, test_size=0.1), strict=True))
    for name, part in parts.items():
        numbered = part.assign(id=np.arange(1, len(part) + 1))
        copy_files(
            (crystals / str(old) / "geometry.xyz", public / name / str(new) / "geometry.xyz")
            for old, new in zip(part["id"], numbered["id"], strict=True)
        )
        parts[name] = numbered
    write_csv(parts["train"], public / "train.csv")
    write_csv(parts["test"].drop(columns=list(TARGETS)), public / "test.csv")
    write_csv(parts["test"], private / "test.csv")
    means = dict(zip(TARGETS, (0.1779, 1.8892), strict=True))
    write_csv(parts["test"][["id"]].assign(**means), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Mixed oxides (Al, Ga, In): indium narrows the gap and widens the cell, and each space group has its offset."""
    rows = {"tiny": 300, "small": 1500}[size]
    groups = np.array([12, 33, 167, 194, 206, 227])
    group = rng.integers(0, len(groups), rows)
    atoms = rng.choice([10, 20, 30, 40], rows)
    shares = rng.dirichlet((1.0, 1.0, 1.0), rows).round(4)
    angles = np.array([(90, 103, 90), (90, 90, 90), (90, 90, 120), (90, 90, 120), (90, 90, 90), (60, 60, 60)])
    bond = 1.0 + 0.06 * shares[:, 1] + 0.2 * shares[:, 2]
    cell = bond[:, None] * np.cbrt(atoms * 10.0)[:, None] * rng.normal(1.0, 0.08, (rows, 3))
    gap = 5.2 - 1.2 * shares[:, 1] - 4.0 * shares[:, 2] + 1.4 * shares[:, 2] ** 2 + np.sin(group) * 0.4
    formation = 0.05 + 0.6 * shares[:, 0] * shares[:, 2] + 0.08 * group * shares[:, 1]
    table = pd.DataFrame({"id": np.arange(1, rows + 1), "spacegroup": groups[group], "number_of_total_atoms": atoms})
    for element, share in zip(("al", "ga", "in"), shares.T, strict=True):
        table[f"percent_atom_{element}"] = share
    for number in range(3):
        table[f"lattice_vector_{number + 1}_ang"] = cell[:, number].round(4)
    for number, name in enumerate(("alpha", "beta", "gamma")):
        table[f"lattice_angle_{name}_degree"] = (angles[group, number] + rng.normal(0, 0.02, rows)).round(4)
    table[TARGETS[0]] = np.maximum(formation + rng.normal(0, 0.02, rows), 0.0).round(4)
    table[TARGETS[1]] = np.maximum(gap + rng.normal(0, 0.15, rows), 0.01).round(4)
    write_zip(raw / "train.csv.zip", {"train.csv": table.to_csv(index=False)})
    geometry = (_geometry(rng, cell[row], int(atoms[row]), shares[row]) for row in range(rows))
    write_zip(raw / "train.zip", {f"train/{number}/geometry.xyz": text for number, text in enumerate(geometry, 1)})


def _geometry(rng: np.random.Generator, cell: NDArray[np.float64], atoms: int, shares: NDArray[np.float64]) -> str:
    """Return a cell and its atoms, three of five of which are oxygen, in the format of FHI-aims."""
    metal = rng.choice(["Al", "Ga", "In"], atoms, p=shares / shares.sum())
    kinds = np.where(np.arange(atoms) % 5 < 2, metal, "O")
    lines = [f"lattice_vector {' '.join(f'{x:.4f}' for x in vector)}" for vector in np.diag(cell)]
    lines += [
        f"atom {' '.join(f'{x:.4f}' for x in place)} {kind}"
        for place, kind in zip(rng.random((atoms, 3)) * cell, kinds, strict=True)
    ]
    return "#=======\n#Invented crystal\n#=======\n" + "\n".join(lines) + "\n"
