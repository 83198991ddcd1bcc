"""Grading: metrics, submission checks, the reward firewall, medals."""

from mle_gym.grading.grade import Grade, InvalidSubmission, Split, Thresholds  # isort: skip  (before the function `grade`)
from mle_gym.grading.api import grade

__all__ = ["Grade", "InvalidSubmission", "Split", "Thresholds", "grade"]
