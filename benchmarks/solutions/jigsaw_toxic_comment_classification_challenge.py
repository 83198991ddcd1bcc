"""Six kinds of toxicity, one logistic regression for each over the words of a comment."""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
sample = pd.read_csv("input/sample_submission.csv")
kinds = list(sample.columns[1:])

words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=50_000, strip_accents="unicode")
x = words.fit_transform(train["comment_text"].fillna(""))
unseen = words.transform(test["comment_text"].fillna(""))
fit, check = train_test_split(np.arange(len(train)), test_size=0.2, random_state=0)

result = pd.DataFrame({"id": test["id"]})
aucs = []
for kind in kinds:
    y = train[kind].to_numpy()
    model = LogisticRegression(C=2.0, class_weight="balanced", solver="liblinear")
    model.fit(x[fit], y[fit])
    if 0 < y[check].sum() < len(check):
        aucs.append(roc_auc_score(y[check], model.predict_proba(x[check])[:, 1]))
    model.fit(x, y)
    result[kind] = model.predict_proba(unseen)[:, 1]
print("mean ROC AUC on a fifth of the training data:", round(float(np.mean(aucs)), 4))
result[["id", *kinds]].to_csv("submission.csv", index=False)
