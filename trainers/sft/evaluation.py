"""What a policy's programs are worth: sampled, executed, graded, counted."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.common.policy import Policy
from trainers.common.transformers_generator import TransformersGenerator
from trainers.sft.estimators import family_of

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """Counts over the programs sampled for one environment."""

    env_id: str
    temperature: float
    outcomes: dict[str, int]
    """Outcome -> programs, most frequent first."""
    families: dict[str, int]
    """Estimator family -> programs among the valid ones."""
    scores: tuple[float, ...]
    """Raw metric of the valid programs, ascending."""
    milestones: float
    """Mean number of milestones reached by programs that were not valid; nan when all were."""
    tokens: float
    """Mean length of a response."""
    duration: float
    """Mean seconds a valid program ran; nan when none was valid."""
    generation_seconds: float
    """Seconds to sample all responses."""

    @property
    def programs(self) -> int:
        """Programs sampled."""
        return sum(self.outcomes.values())

    @property
    def valid_share(self) -> float:
        """Share of programs with a score."""
        return len(self.scores) / self.programs

    def __str__(self) -> str:
        quartiles: list[float] = np.quantile(self.scores, [0, 0.25, 0.5, 0.75, 1]).tolist() if self.scores else []
        return "\n".join(
            [
                f"{self.env_id} at temperature {self.temperature:g}: {self.valid_share:.1%} of {self.programs} valid",
                "  outcomes: " + ", ".join(f"{name} {count}" for name, count in self.outcomes.items()),
                "  families among valid: " + (", ".join(f"{n} {c}" for n, c in self.families.items()) or "none"),
                "  score min, quartiles, max: " + (" ".join(f"{q:.4f}" for q in quartiles) or "none"),
                f"  milestones of the rest {self.milestones:.2f}; valid programs run {self.duration:.2f} s",
                f"  {self.tokens:.0f} tokens a response, {self.tokens * self.programs / self.generation_seconds:.0f} "
                "tokens a second",
            ]
        )


def evaluate(
    policy: Policy,
    env_id: str,
    count: int,
    *,
    temperature: float = 1.0,
    max_new_tokens: int = 320,
    seed: int = 0,
    env_kwargs: dict[str, Any] | None = None,
) -> Evaluation:
    """Sample programs for one prompt of an environment, execute each, and count.

    Args:
        policy: Who writes.
        env_id: For whom.
        count: Programs; greedy decoding needs one.
        temperature: Of sampling; 0 is greedy.
        max_new_tokens: Longer responses are cut.
        seed: Of sampling and of the environment.
        env_kwargs: Arguments of ``gym.make``.
    """
    import gymnasium as gym

    import mle_gym  # noqa: F401  (registers the environments)

    env = gym.make(env_id, **(env_kwargs or {}))
    prompt, _ = env.reset(seed=seed)
    generator = TransformersGenerator(policy)
    start = time.perf_counter()
    generations = generator.generate(
        [prompt] * count, temperature=temperature, max_new_tokens=max_new_tokens, seed=seed
    )
    seconds = time.perf_counter() - start
    infos = []
    for generation in generations:
        env.reset(seed=seed)
        infos.append(env.step(generation.text)[4])
    env.close()
    valid = [info for info in infos if info["outcome"] == "scored"]
    failed = [float(np.sum(info["milestones"])) for info in infos if info["outcome"] != "scored"]
    return Evaluation(
        env_id=env_id,
        temperature=temperature,
        outcomes=dict(Counter(str(info["outcome"]) for info in infos).most_common()),
        families=dict(Counter(family_of(str(info["program"])) for info in valid).most_common()),
        scores=tuple(sorted(float(info["score"]) for info in valid)),
        milestones=float(np.mean(failed)) if failed else float("nan"),
        tokens=float(np.mean([len(generation.response_ids) for generation in generations])),
        duration=float(np.mean([info["duration"] for info in valid])) if valid else float("nan"),
        generation_seconds=seconds,
    )
