from tests.trainers.conftest import tiny_folder

__all__ = ["tiny_folder"]
