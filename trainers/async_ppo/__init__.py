"""The ``trainers.async_ppo`` package."""
