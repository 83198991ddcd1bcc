"""References for images of digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import shift  # type: ignore[import-untyped]
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.references.folder import Array, Folder, Reference

__all__ = ["DIGITS"]


def _pixels(folder: Folder, names: Sequence[str]) -> Array:
    """Pixels in [0, 1], shape ``(images, height, width)``."""
    images = []
    for name in names:
        with Image.open(folder.path / name) as image:
            images.append(np.asarray(image, dtype=np.float64) / 255)
    return np.stack(images)


def _fit(folder: Folder, model: Any, *, shifted: bool = False) -> Array:
    x, y = _pixels(folder, folder.train["file"].tolist()), folder.labels.to_numpy()
    test = _pixels(folder, folder.test["file"].tolist())
    if shifted:
        moves = [(0, 0), (0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5)]
        x, y = np.concatenate([shift(x, (0, *move), order=1) for move in moves]), np.tile(y, len(moves))
    model.fit(x.reshape(len(x), -1), y)
    return np.asarray(model.predict(test.reshape(len(test), -1)))


DIGITS: tuple[Reference, ...] = (
    Reference("naive Bayes", lambda folder, seed: _fit(folder, GaussianNB(var_smoothing=1e-3)), baseline=True),
    Reference(
        "linear",
        lambda folder, seed: _fit(folder, make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))),
    ),
    Reference("forest", lambda folder, seed: _fit(folder, ExtraTreesClassifier(300, random_state=seed))),
    Reference("neighbours", lambda folder, seed: _fit(folder, KNeighborsClassifier(3))),
    Reference("support vectors", lambda folder, seed: _fit(folder, SVC(C=10.0, gamma=0.25))),
    Reference("support vectors, shifts", lambda folder, seed: _fit(folder, SVC(C=10.0, gamma=0.25), shifted=True)),
)
"""digit-images."""
