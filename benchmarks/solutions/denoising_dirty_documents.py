"""Clean scans: each pixel against the paper around it and against its neighbours, learnt by boosted trees."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

SAMPLE = 200_000
rng = np.random.default_rng(0)


def grey(path):
    """Grey values from 0 to 1."""
    return np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255.0


def features(page):
    """Nine numbers for each pixel: itself, the paper nearby, what is dark nearby, smoothed and sharp versions."""
    paper = gaussian_filter(maximum_filter(page, 9), 3)
    ink = gaussian_filter(minimum_filter(page, 15), 3)
    soft = [gaussian_filter(page, width) for width in (0.7, 1.5, 4)]
    inside = (page - ink) / np.maximum(paper - ink, 0.05)
    columns = [page, paper, ink, inside, page / np.maximum(paper, 0.05), *soft, page - soft[2]]
    return np.stack(columns, axis=-1).reshape(-1, len(columns))


pages = sorted(Path("input/train").glob("*.png"))
each = max(SAMPLE // len(pages), 200)
x, y = [], []
for path in pages:
    page, clean = features(grey(path)), grey(Path("input/train_cleaned") / path.name).ravel()
    rows = rng.choice(len(clean), min(each, len(clean)), replace=False)
    x.append(page[rows])
    y.append(clean[rows])
x, y = np.concatenate(x), np.concatenate(y)
fit, held = train_test_split(np.arange(len(x)), test_size=0.2, random_state=0)
model = HistGradientBoostingRegressor(max_iter=80, learning_rate=0.15, max_leaf_nodes=31, random_state=0)
guess = model.fit(x[fit], y[fit]).predict(x[held]).clip(0, 1)
print("RMSE on held-out pixels:", round(root_mean_squared_error(y[held], guess), 4))

parts = []
for path in sorted(Path("input/test").glob("*.png")):
    page = grey(path)
    rows, columns = page.shape
    ids = [f"{path.stem}_{row}_{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
    parts.append(pd.DataFrame({"id": ids, "value": model.predict(features(page)).clip(0, 1).round(4)}))
pd.concat(parts).to_csv("submission.csv", index=False)
