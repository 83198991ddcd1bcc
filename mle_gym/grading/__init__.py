"""The ``mle_gym.grading`` package."""
