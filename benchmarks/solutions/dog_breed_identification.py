"""Dog breeds from small pictures: pixels and colour histograms, reduced, then discriminant analysis."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def features(path):
    """Small pixels, and how often each colour is there in the middle."""
    image = Image.open(path)
    image.draft("RGB", (64, 64))
    pixels = np.asarray(image.convert("RGB").resize((24, 24), Image.BOX), dtype=np.float32)
    centre = pixels[6:18, 6:18].reshape(-1, 3)
    bins, _ = np.histogramdd(centre, bins=(4, 4, 4), range=[(0, 256)] * 3)
    small = pixels.reshape(8, 3, 8, 3, 3).mean(axis=(1, 3))
    return np.concatenate([small.ravel(), np.sqrt(bins.ravel()), centre.mean(0), centre.std(0)])


def table(folder, ids):
    """One row for each photo."""
    return np.array([features(folder / f"{name}.jpg") for name in ids])


root = Path("input")
labels = pd.read_csv(root / "labels.csv")
sample = pd.read_csv(root / "sample_submission.csv")
breeds = list(sample.columns[1:])
x, y = table(root / "train", labels["id"]), labels["breed"].to_numpy()

known = sorted(set(y))
parts = max(2, min(60, len(x) // 4, x.shape[1]))
model = make_pipeline(
    StandardScaler(), PCA(parts, random_state=0), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3)
)
if pd.Series(y).value_counts().min() >= 3:
    guess = cross_val_predict(model, x, y, cv=3, method="predict_proba")
    print("log loss, cross-validated:", round(log_loss(y, guess, labels=known), 4))
model.fit(x, y)
chance = pd.DataFrame(model.predict_proba(table(root / "test", sample["id"])), columns=model.classes_)
# A breed that was not seen, and too much certainty, both cost dearly in a log loss.
chance = 0.95 * chance.reindex(columns=breeds, fill_value=0.0) + 0.05 / len(breeds)
chance = chance.div(chance.sum(axis=1), axis=0)
chance.insert(0, "id", sample["id"])
chance.to_csv("submission.csv", index=False)
