"""Insults: a logistic regression over the words and the pieces of words of a comment."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline, make_union


def clean(comments):
    """Comments without their quotes and with their escapes undone as far as it matters."""
    text = comments.str.strip('"').str.replace(r"\\+(n|t|r|xa0|xc2)", " ", regex=True)
    return text.str.replace(r"\\+(x[0-9a-f]{2}|u[0-9a-f]{4})", "", regex=True).str.lower()


train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
sample = pd.read_csv("input/sample_submission_null.csv")  # the same rows in the same order
words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"[\w']+|[!?*@#]+")
pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True)
model = make_pipeline(make_union(words, pieces), LogisticRegression(C=4.0, max_iter=500, class_weight="balanced"))

text = clean(train["Comment"])
inside = cross_val_predict(model, text, train["Insult"], cv=3, method="predict_proba")[:, 1]
print(f"cross-validated AUC {roc_auc_score(train['Insult'], inside):.4f} on {len(train)} comments")

model.fit(text, train["Insult"])
sample["Insult"] = model.predict_proba(clean(test["Comment"]))[:, 1]
sample.to_csv("submission.csv", index=False)
