"""Who wrote it: words, letter groups and naive Bayes weights in a logistic regression."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union

train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
sample = pd.read_csv("input/sample_submission.csv")
authors = list(sample.columns[1:])

words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, token_pattern=r"\w+|[,;:.?!]")
letters = TfidfVectorizer(sublinear_tf=True, analyzer="char", ngram_range=(2, 3), min_df=3, max_features=10_000)
y = train["author"]
models = [
    make_pipeline(make_union(words, letters), LogisticRegression(C=5.0, max_iter=60, tol=1e-3)),
    make_pipeline(words, MultinomialNB(alpha=0.1)),
]
guess = sum(cross_val_predict(model, train["text"], y, cv=3, method="predict_proba") for model in models) / len(models)
print("log loss, cross-validated:", round(log_loss(y, guess, labels=sorted(set(y))), 4))

chance = sum(model.fit(train["text"], y).predict_proba(test["text"]) for model in models) / len(models)
result = pd.DataFrame(chance, columns=models[0].classes_).reindex(columns=authors, fill_value=0.0)
result.insert(0, "id", test["id"])
result.to_csv("submission.csv", index=False)
