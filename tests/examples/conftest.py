"""The tiny models of the trainers' tests."""

from tests.trainers.conftest import bandit_config, tiny_folder

__all__ = ["bandit_config", "tiny_folder"]
