"""The ``trainers.sft`` package."""
