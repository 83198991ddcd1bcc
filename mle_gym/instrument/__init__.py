"""The ``mle_gym.instrument`` package."""
