"""The ``mle_gym.sandbox`` package."""
