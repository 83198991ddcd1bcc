"""H&M Personalized Fashion Recommendations: what does a customer buy in the coming week?"""

from __future__ import annotations

import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.rankings import guesses, mean_average_precision


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """MAP@12 over the customers of the answers; other customers are ignored."""
    require_columns(submission, "customer_id", "prediction")
    if surplus := [str(name) for name in submission.columns if name not in ("customer_id", "prediction")]:
        raise InvalidSubmission(
            f"The submission has the column {surplus[0]!r}; expected customer_id and prediction only."
        )
    mine = submission[submission["customer_id"].isin(answers["customer_id"])].sort_values("customer_id", kind="stable")
    truth = answers.sort_values("customer_id", kind="stable")
    missing = ~truth["customer_id"].isin(mine["customer_id"]).to_numpy()
    if missing.any():
        first = truth["customer_id"].to_numpy()[missing][0]
        raise InvalidSubmission(
            f"Column 'customer_id': {int(missing.sum()):,} of the {len(truth):,} customers in the answers are missing, "
            f"the first is {say(first)}; expected all customers of the sample submission."
        )
    # A customer who stands twice moves the rows after it against the answers, as in MLE-bench.
    ranked = guesses(mine["prediction"].iloc[: len(truth)])
    return mean_average_precision([set(row) for row in guesses(truth["prediction"])], ranked, 12)
