"""Competitions whose test set is cut from each category: the Herbarium ones and iNaturalist."""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.labels import integer_label, macro_f1, parsed_labels

__all__ = ["herbarium_score"]


def herbarium_score(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over the categories of truth and predictions, rows matched by ``Id``.

    Raises:
        InvalidSubmission: A column or an id is missing, an id stands twice, or a cell is no category.
    """
    require_columns(submission, "Id", "Predicted")
    predicted = parsed_labels(submission, "Predicted", integer_label, "the number of a category")
    rows = aligned(submission.assign(Predicted=predicted), answers, "Id")
    return macro_f1(answers["Predicted"].to_numpy(), rows["Predicted"].to_numpy())
