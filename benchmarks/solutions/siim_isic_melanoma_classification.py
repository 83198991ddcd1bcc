"""Melanoma: size, shape and colours of the dark spot, with age, sex and site, and boosted trees over them."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from scipy.ndimage import binary_erosion
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

SIDE, MOST = 32, 6000


def features(path):
    """Area, outline, darkness and colours of what is darker than the skin around it."""
    image = Image.open(path)
    image.draft("RGB", (2 * SIDE, 2 * SIDE))
    pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.BOX), dtype=np.float32)
    grey = pixels.mean(axis=2)
    skin, dark = np.quantile(grey, [0.85, 0.03])
    spot = grey < (skin + dark) / 2
    rim = spot & ~binary_erosion(spot)
    inside = pixels[spot] if spot.any() else pixels.reshape(-1, 3)
    parts = [[spot.sum(), rim.sum(), rim.sum() / np.sqrt(spot.sum() + 1), skin - dark, dark / (skin + 1)]]
    parts += [inside.mean(0), inside.std(0), pixels.mean((0, 1)), np.quantile(grey, [0.1, 0.3, 0.5, 0.7])]
    return np.concatenate(parts)


def table(frame, folder):
    """Pictures and what is known of the patient, one row each."""
    pictures = np.array([features(folder / f"{name}.jpg") for name in frame["image_name"]])
    site = frame["anatom_site_general_challenge"].map({name: k for k, name in enumerate(sites)})
    return np.column_stack([pictures, frame["age_approx"], frame["sex"] == "male", site.fillna(-1)])


root = Path("input")
train, test = pd.read_csv(root / "train.csv"), pd.read_csv(root / "test.csv")
sites = sorted(train["anatom_site_general_challenge"].dropna().unique())
sick, well = train[train["target"] == 1], train[train["target"] == 0]
train = pd.concat([sick, well.sample(min(MOST, len(well)), random_state=0)]).sample(frac=1, random_state=0)
x, y = table(train, root / "jpeg/train"), train["target"]
model = HistGradientBoostingClassifier(
    max_iter=150, learning_rate=0.04, max_leaf_nodes=8, l2_regularization=1.0, early_stopping=False, random_state=0
)
inside = cross_val_predict(model, x, y, cv=3, method="predict_proba")[:, 1]
print(f"cross-validated AUC {roc_auc_score(y, inside):.4f} on {len(x)} lesions")

model.fit(x, y)
found = pd.Series(model.predict_proba(table(test, root / "jpeg/test"))[:, 1], index=test["image_name"])
sample = pd.read_csv(root / "sample_submission.csv")
sample["target"] = sample["image_name"].map(found)
sample.to_csv("submission.csv", index=False)
