"""The ``mle_gym.tasks.offline`` package."""
