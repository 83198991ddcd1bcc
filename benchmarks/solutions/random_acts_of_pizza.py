"""Pizza: words of a request by logistic regression, then boosted trees over that and what is known of who asks."""

import json

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

with open("input/train.json", encoding="utf-8") as file:
    train = pd.DataFrame(json.load(file))
with open("input/test.json", encoding="utf-8") as file:
    test = pd.DataFrame(json.load(file))
sample = pd.read_csv("input/sampleSubmission.csv")
y = train["requester_received_pizza"].astype(int)


def text(frame):
    """Title, request, and the forums somebody writes in, as words."""
    forums = frame["requester_subreddits_at_request"].map(lambda names: " ".join(f"r_{name}" for name in names))
    return frame["request_title"] + " " + frame["request_text_edit_aware"] + " " + forums


def table(frame):
    """Numbers that were known when the request was made."""
    x = frame[[name for name in test.columns if name.endswith("_at_request") and "subreddits_at" not in name]]
    x = x.apply(lambda column: np.sign(column) * np.log1p(column.abs()))
    x["length"] = frame["request_text_edit_aware"].str.split().map(len)
    x["title"] = frame["request_title"].str.split().map(len)
    x["time"] = frame["unix_timestamp_of_request"]
    x["day"] = frame["unix_timestamp_of_request_utc"] // 86_400 % 30
    return x


vectors = TfidfVectorizer(min_df=3, sublinear_tf=True, max_features=20_000)
words = make_pipeline(vectors, LogisticRegression(C=1.0, max_iter=500, class_weight="balanced"))
x, asked = table(train), table(test)
x["words"] = cross_val_predict(words, text(train), y, cv=5, method="predict_proba")[:, 1]
asked["words"] = words.fit(text(train), y).predict_proba(text(test))[:, 1]

model = HistGradientBoostingClassifier(max_iter=100, learning_rate=0.04, max_leaf_nodes=8, early_stopping=False)
inside = cross_val_predict(model, x, y, cv=5, method="predict_proba")[:, 1]
print(f"cross-validated AUC {roc_auc_score(y, inside):.4f} on {len(x)} requests")
found = pd.Series(model.fit(x, y).predict_proba(asked)[:, 1], index=test["request_id"])
sample["requester_received_pizza"] = sample["request_id"].map(found)
sample.to_csv("submission.csv", index=False)
