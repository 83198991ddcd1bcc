"""References for texts: reviews, words, labels of artworks."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]
from scipy.stats import rankdata  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import SVR, LinearSVC

from benchmarks.references.folder import Array, Folder, Reference

__all__ = ["ARTWORKS", "REVIEWS", "WORDS"]


def _words(**options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2), **options)


def _characters(low: int, high: int, **options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char", ngram_range=(low, high), sublinear_tf=True, **options)


def _fit_reviews(folder: Folder, model: Any) -> Array:
    model.fit(folder.train["review"], folder.labels)
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(folder.test["review"]))
    return np.asarray(model.predict_proba(folder.test["review"])[:, 1])


def _reviews_bayes(folder: Folder, seed: int) -> Array:
    return _fit_reviews(folder, make_pipeline(CountVectorizer(max_features=1000), MultinomialNB()))


def _reviews_words(folder: Folder, seed: int) -> Array:
    return _fit_reviews(folder, make_pipeline(_words(), LogisticRegression(C=3.0, max_iter=1000)))


def _reviews_svm(folder: Folder, seed: int) -> Array:
    """Words weighed by their log count ratio, then a linear machine (Wang and Manning 2012)."""
    counts = CountVectorizer(ngram_range=(1, 2), min_df=2, binary=True)
    x, test, y = counts.fit_transform(folder.train["review"]), counts.transform(folder.test["review"]), folder.labels
    positive, negative = (np.asarray(x[(y == label).to_numpy()].sum(axis=0)).ravel() + 1.0 for label in (1, 0))
    ratio = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
    model = LogisticRegression(C=0.1, max_iter=1000).fit(x.multiply(ratio).tocsr(), y)
    return np.asarray(model.decision_function(test.multiply(ratio).tocsr()))


def _reviews_characters(folder: Folder, seed: int) -> Array:
    features = make_union(_words(), _characters(2, 5, min_df=5))
    return _fit_reviews(folder, make_pipeline(features, LinearSVC(C=0.2, random_state=seed)))


def _mean_rank(*predictions: Array) -> Array:
    return np.asarray(np.mean([rankdata(p) / len(p) for p in predictions], axis=0))


def _reviews_blend(folder: Folder, seed: int) -> Array:
    members = (_reviews_words, _reviews_svm, _reviews_characters)
    return _mean_rank(*(member(folder, seed) for member in members))


REVIEWS: tuple[Reference, ...] = (
    Reference("counts, naive Bayes", _reviews_bayes, baseline=True),
    Reference("words, logistic", _reviews_words),
    Reference("log ratios, logistic", _reviews_svm),
    Reference("characters, SVM", _reviews_characters),
    Reference("blend", _reviews_blend),
)
"""food-reviews."""


def _fit_lexicon(folder: Folder, features: Any, model: Any) -> Array:
    texts = [f"^{text}$" for text in folder.train["text"].astype("str")]
    tests = [f"^{text}$" for text in folder.test["text"].astype("str")]
    x = features.fit_transform(texts)
    return np.asarray(model.fit(x, folder.labels).predict(features.transform(tests)))


def _lexicon_letters(folder: Folder, seed: int) -> Array:
    return _fit_lexicon(folder, CountVectorizer(analyzer="char", ngram_range=(1, 2)), Ridge(10.0))


def _lexicon_ridge(folder: Folder, seed: int) -> Array:
    return _fit_lexicon(folder, _characters(1, 5), Ridge(0.5))


def _lexicon_neighbours(folder: Folder, seed: int) -> Array:
    model = KNeighborsRegressor(8, metric="cosine", weights=lambda d: 1.0 / (d + 0.05))
    return _fit_lexicon(folder, _characters(2, 6), model)


def _lexicon_machine(folder: Folder, seed: int) -> Array:
    return _fit_lexicon(folder, _characters(1, 7), SVR(C=3.0, gamma=1.0, epsilon=0.2))


def _lexicon_blend(folder: Folder, seed: int) -> Array:
    members = (_lexicon_ridge, _lexicon_machine)
    return np.asarray(np.mean([member(folder, seed) for member in members], axis=0))


WORDS: tuple[Reference, ...] = (
    Reference("letter pairs, ridge", _lexicon_letters, baseline=True),
    Reference("letter 5-grams, ridge", _lexicon_ridge),
    Reference("neighbours", _lexicon_neighbours),
    Reference("support vectors", _lexicon_machine),
    Reference("blend", _lexicon_blend),
)
"""word-sentiment."""


def _art_texts(table: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series[str]:
    # A prefix for each column keeps a word of a title apart from the same word of a medium.
    joined = ["_" + table[name].fillna("").str.lower() for name in columns]
    return reduce(lambda left, right: left + " " + right, joined)


def _art_ridge(folder: Folder, columns: tuple[str, ...], features: Any, model: Any) -> Array:
    x = features.fit_transform(_art_texts(folder.train, columns))
    test = features.transform(_art_texts(folder.test, columns))
    return np.asarray(model.fit(x, folder.labels - 2000).predict(test) + 2000)


def _art_medium(folder: Folder, seed: int) -> Array:
    return _art_ridge(folder, ("medium",), CountVectorizer(max_features=300), Ridge(3.0))


def _art_words(folder: Folder, seed: int) -> Array:
    return _art_ridge(folder, ("artist", "title", "medium"), _words(), Ridge(0.7))


def _art_artists(folder: Folder, seed: int) -> Array:
    """Neighbours by artist and medium: works of one artist come from the same years."""
    model = KNeighborsRegressor(7, metric="cosine", weights="distance")
    columns = ("artist", "artist", "artist", "medium", "title")
    return _art_ridge(folder, columns, _words(), model)


def _art_machine(folder: Folder, seed: int) -> Array:
    """One set of features for each column, in a machine whose loss is absolute, as the metric's is."""
    parts, tests = [], []
    for name, weight in (("artist", 1.0), ("medium", 0.8), ("title", 0.6)):
        features = make_union(_words(), _characters(3, 5, min_df=3))
        parts.append(weight * features.fit_transform(_art_texts(folder.train, (name,))))
        tests.append(weight * features.transform(_art_texts(folder.test, (name,))))
    x, test = csr_matrix(hstack(parts)), csr_matrix(hstack(tests))
    model = SVR(C=10.0, gamma=0.5, epsilon=0.1).fit(x, folder.labels - 2000)
    return np.asarray(model.predict(test) + 2000)


def _art_blend(folder: Folder, seed: int) -> Array:
    members = (_art_artists, _art_machine)
    return np.asarray(np.mean([member(folder, seed) for member in members], axis=0))


ARTWORKS: tuple[Reference, ...] = (
    Reference("words of the medium, ridge", _art_medium, baseline=True),
    Reference("all words, ridge", _art_words),
    Reference("neighbours by artist", _art_artists),
    Reference("support vectors", _art_machine),
    Reference("blend", _art_blend),
)
"""artwork-year."""
