"""Wrappers for the environments of this package."""

from mle_gym.wrappers.self_improvement import Archive, SelfImprovement
from mle_gym.wrappers.wall_clock_limit import WallClockLimit

__all__ = ["Archive", "SelfImprovement", "WallClockLimit"]
