"""RSNA-MICCAI Brain Tumor Radiogenomic Classification: is a tumour's MGMT promoter methylated?"""

from __future__ import annotations

import pandas as pd

from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "BraTS21ID", "MGMT_value")
