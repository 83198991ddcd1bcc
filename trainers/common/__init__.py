"""The ``trainers.common`` package."""
