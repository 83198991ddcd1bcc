"""Predicting Molecular Properties: the magnetic coupling of two atoms of a molecule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.regression import merged

COLUMNS = {
    "train": "id molecule_name atom_index_0 atom_index_1 type scalar_coupling_constant",
    "structures": "molecule_name atom_index atom x y z",
    "dipole_moments": "molecule_name X Y Z",
    "magnetic_shielding_tensors": "molecule_name atom_index XX YX ZX XY YY ZY XZ YZ ZZ",
    "mulliken_charges": "molecule_name atom_index mulliken_charge",
    "potential_energy": "molecule_name potential_energy",
    "scalar_coupling_contributions": "molecule_name atom_index_0 atom_index_1 type fc sd pso dso",
}
"""Kaggle's tables; all but ``train`` are about training molecules only."""
CHARGES = {"H": 0.12, "C": -0.2, "N": -0.4, "O": -0.35}
ENERGIES = {"H": -0.6, "C": -38.1, "N": -54.8, "O": -75.2}
"""Typical values, in e and hartree, for stand-in data."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean over types of coupling of the logarithm of the mean absolute error; -inf if a type is without error."""
    from sklearn.metrics import mean_absolute_error

    (truth, predicted), rows = merged(submission, answers, "id", "scalar_coupling_constant")
    errors = [mean_absolute_error(truth[at], predicted[at]) for at in rows.groupby("type").indices.values()]
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(errors)))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the molecules; every table but that of test pairs has training molecules only."""
    pairs = read_csv(raw / "train.csv")
    molecules = list(pairs.groupby("molecule_name").indices.items())
    train, test = (
        pairs.iloc[np.concatenate([rows for _, rows in part])] for part in split_rows(molecules, test_size=0.1)
    )
    known = train["molecule_name"].unique()
    for name in COLUMNS.keys() - {"train"}:
        table = read_csv(raw / f"{name}.csv")
        write_csv(table[table["molecule_name"].isin(known)], public / f"{name}.csv")
    copy_files((raw / "structures" / f"{name}.xyz", public / "structures" / f"{name}.xyz") for name in known)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "answers.csv")
    write_csv(test.drop(columns="scalar_coupling_constant"), public / "test.csv")
    write_csv(test[["id"]].assign(scalar_coupling_constant=0), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Chains of C, N, O with hydrogens; the coupling falls with the bonds between and follows charge and distance."""
    molecules = {"tiny": 260, "small": 900}[size]
    (raw / "structures").mkdir()
    tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    for number in np.sort(rng.choice(133_885, molecules, replace=False)) + 1:
        atoms, places, parents = _molecule(rng)
        name, places = f"dsgdb9nsd_{number:06d}", places.round(8)
        charges = (np.array([CHARGES[atom] for atom in atoms]) + rng.normal(0, 0.05, len(atoms))).round(6)
        shielding = rng.normal(0, 8, (len(atoms), 9)) + 200 * np.abs(charges)[:, None] * np.eye(3).ravel()
        tables["dipole_moments"].append((name, *(charges[:, None] * places).sum(axis=0).round(4)))
        energy = sum(ENERGIES[atom] for atom in atoms) + rng.normal(0, 0.1)
        tables["potential_energy"].append((name, round(energy, 6)))
        for at, atom in enumerate(atoms):
            tables["structures"].append((name, at, atom, *places[at]))
            tables["mulliken_charges"].append((name, at, charges[at]))
            tables["magnetic_shielding_tensors"].append((name, at, *shielding[at].round(4)))
        for pair, parts in _couplings(rng, atoms, places, parents, charges):
            tables["scalar_coupling_contributions"].append((name, *pair, *parts))
            tables["train"].append((len(tables["train"]), name, *pair, round(sum(parts), 5)))
        lines = [f"{atom}\t{x:.8f}\t{y:.8f}\t{z:.8f}\n" for atom, (x, y, z) in zip(atoms, places, strict=True)]
        (raw / "structures" / f"{name}.xyz").write_text(f"{len(atoms)}\n\n" + "".join(lines), encoding="ascii")
    for table, rows in tables.items():
        pd.DataFrame(rows, columns=COLUMNS[table].split()).to_csv(raw / f"{table}.csv", index=False)


def _molecule(rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64], list[int]]:
    """Return atoms, places (angstrom) and to which earlier atom each is bound (-1 for the first)."""
    heavy = ["C", *rng.choice(["C", "C", "N", "O"], rng.integers(1, 4)).tolist()]
    atoms, parents = list(heavy), [-1, *range(len(heavy) - 1)]
    for at, atom in enumerate(heavy):
        free = {"C": 4, "N": 3, "O": 2}[atom] - (at > 0) - (at < len(heavy) - 1)
        atoms += ["H"] * free
        parents += [at] * free
    places = np.zeros((len(atoms), 3))
    for at in range(1, len(atoms)):
        away = rng.normal(0, 0.5, 3) + (places[parents[at]] - places[:at].mean(axis=0))
        step = 1.09 if atoms[at] == "H" else 1.5
        places[at] = places[parents[at]] + step * away / np.linalg.norm(away)
    return atoms, places, parents


def _couplings(
    rng: np.random.Generator,
    atoms: list[str],
    places: NDArray[np.float64],
    parents: list[int],
    charges: NDArray[np.float64],
) -> Iterator[tuple[tuple[int, int, str], tuple[float, ...]]]:
    """Yield each hydrogen's pairs over one to three bonds, with type, and the four parts of their coupling."""
    count = len(atoms)
    bonds = np.zeros((count, count), dtype=np.int64)
    for at in range(1, count):
        bonds[at, :at] = bonds[:at, at] = bonds[parents[at], :at] + 1
    for one in range(count):
        for other in range(one):
            apart = int(bonds[one, other])
            if atoms[one] != "H" or apart > 3 or atoms[other] == "O":
                continue
            distance = float(np.linalg.norm(places[one] - places[other]))
            base = (95.0, -4.0, 6.0)[apart - 1] * {"C": 1.0, "N": 0.6, "H": 1.5}[atoms[other]]
            fc = base * (1 + 0.4 * charges[other]) * distance / (1.09, 2.1, 2.7)[apart - 1] + rng.normal(0, 0.8)
            parts = (fc, *rng.normal((0.2, 0.5, 0.3), 0.1))
            yield (one, other, f"{apart}JH{atoms[other]}"), tuple(round(float(part), 6) for part in parts)
