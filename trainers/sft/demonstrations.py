"""Demonstrations: programs of the grammar that were executed in their environments and earned a score."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["SHIPPED", "TASKS", "Demonstration", "collect", "load", "save"]

SHIPPED = Path(__file__).parent / "demonstrations.jsonl.gz"
"""The demonstrations that the tiny language model was warm-started on."""

TASKS: dict[str, int] = {
    "remote-work": 160,
    "email-spam": 120,
    "ames-housing": 160,
    "job-runtime": 120,
    "leaf-species": 80,
    "cell-segmentation": 60,
    "breast-cancer": 60,
    "concrete-strength": 60,
    "chicago-ridership": 50,
    "co2-forecast": 40,
    "digit-images": 40,
    "food-reviews": 40,
    "word-sentiment": 40,
    "artwork-year": 40,
}
"""Demonstrations for each offline task; ``credit-default`` is left for reinforcement learning."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An answer that was executed and graded."""

    task: str
    """Environment id."""
    plan: str
    program: str
    family: str
    """Estimator family."""
    score: float
    """Raw metric on the reward split."""
    duration: float
    """Seconds the program ran."""

    @property
    def response(self) -> str:
        """The text that a policy is to write."""
        return f"{self.plan}\n```python\n{self.program}```"


def collect(
    counts: dict[str, int],
    *,
    seed: int = 0,
    time_limit: float = 3.0,
    env_kwargs: dict[str, Any] | None = None,
    report: Callable[[str], None] = print,
) -> list[Demonstration]:
    """Draw programs for each task, execute them one after the other, and keep those that score.

    Args:
        counts: Task name -> demonstrations wanted.
        seed: Seeds the grammar.
        time_limit: Slower programs are not kept.
        env_kwargs: Further arguments of ``gym.make``.
        report: Receives one line per task.

    Raises:
        RuntimeError: Fewer than one program in five scores on a task.
    """
    import gymnasium as gym

    import mle_gym  # noqa: F401  (registers the environments)
    from mle_gym.tasks import get_task
    from trainers.sft.grammar import Grammar

    kept: list[Demonstration] = []
    for name, wanted in counts.items():
        env_id = f"mle_gym/{name}-v0"
        task = get_task(name)
        draw = random.Random(f"{seed}/{name}")
        grammar = Grammar(task, task.load())
        env = gym.make(env_id, time_limit=time_limit, reward_split="public", **(env_kwargs or {}))
        seen: set[str] = set()
        found: list[Demonstration] = []
        tried = 0
        while len(found) < wanted:
            draft = grammar.draw(draw)
            if draft.response in seen:
                continue
            seen.add(draft.response)
            tried += 1
            if tried > 5 * wanted + 20:
                raise RuntimeError(
                    f"Only {len(found)} of {tried - 1} programs for {name} scored; is the sandbox working?"
                )
            env.reset(seed=seed)
            info = env.step(draft.response)[4]
            if info["outcome"] == "scored":
                found.append(
                    Demonstration(
                        env_id,
                        draft.plan,
                        draft.program,
                        draft.family,
                        round(info["score"], 6),
                        round(info["duration"], 3),
                    )
                )
        env.close()
        report(f"{name}: {len(found)} of {tried} programs scored")
        kept += found
    return kept


def save(demonstrations: Iterable[Demonstration], path: Path) -> None:
    """Write demonstrations as gzipped JSON lines; the same demonstrations give the same bytes."""
    text = "".join(json.dumps(asdict(d), ensure_ascii=False) + "\n" for d in demonstrations)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def load(path: Path = SHIPPED) -> list[Demonstration]:
    """Read demonstrations.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not a demonstration.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"There are no demonstrations at {path}; make them with `mle-gym sft --collect --demonstrations {path}`."
        )
    lines: Sequence[str] = gzip.decompress(path.read_bytes()).decode().splitlines()
    try:
        return [Demonstration(**json.loads(line)) for line in lines]
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a file of demonstrations ({error}).") from error
