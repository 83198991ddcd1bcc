"""The ``trainers`` package."""
