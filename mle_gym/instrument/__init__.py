"""Environment instrumentation: milestones, the instrumenters that make them visible, and the credit they earn."""

from __future__ import annotations

from mle_gym.instrument.base import CREDIT_PER_MILESTONE, MILESTONES, Instrumenter, InstrumenterFailed
from mle_gym.instrument.credit import credit, fitted_estimators, milestone_flags
from mle_gym.instrument.registry import INSTRUMENTERS, make_instrumenter

__all__ = [
    "CREDIT_PER_MILESTONE",
    "INSTRUMENTERS",
    "MILESTONES",
    "Instrumenter",
    "InstrumenterFailed",
    "credit",
    "fitted_estimators",
    "make_instrumenter",
    "milestone_flags",
]
