"""The ``mle_gym.tasks`` package."""
