"""The ``mle_gym.wrappers`` package."""
