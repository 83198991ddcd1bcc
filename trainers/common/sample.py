"""What trainers learn from: one prompt, one response, one execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainers.common.candidates import Candidates

__all__ = ["Generation", "Sample"]


@dataclass(frozen=True, slots=True)
class Generation:
    """A response as it was sampled; everything the loss needs of the behaviour policy is recorded here."""

    prompt: str
    text: str
    """The decoded response, as handed to ``env.step``."""
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    """Includes the end-of-text token when the model produced it."""
    logprobs: tuple[float, ...]
    """Log-probability of each response token under the true sampling distribution (temperature included)."""
    versions: tuple[int, ...]
    """Policy version that produced each response token."""
    temperature: float
    finished: bool
    """False when the response was cut at the token limit."""
    candidates: Candidates | None = None
    """What else could have been drawn; None where it was not recorded."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A generation with what its execution earned."""

    ticket: int
    generation: Generation
    task: str
    """Environment id."""
    group: int
    """Samples of one group share the very same prompt."""
    reward: float
    reward_valid: bool
    """False: the infrastructure failed; masked before weights and advantages."""
    duration: float
    """Seconds the program ran."""
    outcome: str
    queued: float
    """Stamps, seconds since the run's start: generation asked for ..."""
    generated: float
    started: float
    ended: float
    info: Mapping[str, object] = field(default_factory=dict)
    """The step's ``info``, JSON-able."""
    cached: bool = False
    """Answered from the log of executions: the same program had run before, and took ``duration`` then."""

    @property
    def version(self) -> int:
        """Version of the oldest token."""
        return min(self.generation.versions, default=0)
