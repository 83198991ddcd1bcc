"""How good a policy is: programs sampled from it, executed and judged, one table per task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainers.common.executor import Executor
from trainers.common.families import family
from trainers.common.generator import Generator
from trainers.common.jsonlines import plain
from trainers.common.judge import Judge
from trainers.common.sample import Generation

__all__ = ["Job", "Trial", "evaluate", "execute", "table"]

Trial = Mapping[str, Any]
"""One executed program: ``task``, ``greedy``, ``response``, ``tokens``, ``reward``, ``info``."""

Job = tuple[str, bool, Generation]
"""A program to be executed: task, whether it is greedy, and the response."""


def evaluate(
    executor: Executor,
    tasks: Sequence[str],
    prompts: Mapping[str, str],
    generator: Generator,
    judge: Judge,
    *,
    samples: int,
    max_new_tokens: int,
    seed: int,
    beat: Callable[[], None] = lambda: None,
    poll: Callable[[], None] = lambda: None,
    poll_seconds: float = 0.5,
) -> tuple[dict[str, Any], list[Trial]]:
    """Execute ``samples`` programs at temperature 1 and one greedy program for each task.

    Args:
        executor: Environments with nothing in flight.
        tasks: Task of each environment.
        prompts: Task -> prompt.
        generator: Writes the programs.
        judge: Says which are valid.
        samples: Programs per task.
        max_new_tokens: Longest response.
        seed: Of the sampling.
        beat: Called at every completion.
        poll: Called at every look that found nothing; may raise.
        poll_seconds: Time between looks.

    Returns:
        A table per task (:func:`table`), and every trial.
    """
    jobs: list[Job] = []
    for rank, (task, prompt) in enumerate(prompts.items()):
        draw = int(np.random.SeedSequence([seed, 1, rank]).generate_state(1)[0])
        for greedy, count in ((False, samples), (True, 1)):
            generations = generator.generate(
                [prompt] * count, temperature=0.0 if greedy else 1.0, max_new_tokens=max_new_tokens, seed=draw
            )
            beat()
            jobs += [(task, greedy, generation) for generation in generations]
    trials = execute(executor, tasks, jobs, beat=beat, poll=poll, poll_seconds=poll_seconds)
    return {task: table([trial for trial in trials if trial["task"] == task], judge) for task in prompts}, trials


def execute(
    executor: Executor,
    tasks: Sequence[str],
    jobs: Sequence[Job],
    *,
    beat: Callable[[], None] = lambda: None,
    poll: Callable[[], None] = lambda: None,
    poll_seconds: float = 0.5,
) -> list[Trial]:
    """Execute programs, each in a free environment of its task, and return them in order of completion."""
    trials: list[Trial] = []
    free: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        free.setdefault(task, []).append(index)
    waiting = list(reversed(jobs))
    flying: dict[int, tuple[int, Job]] = {}
    while waiting or flying:
        blocked = []
        while waiting:
            job = waiting.pop()
            if not free[job[0]]:
                blocked.append(job)
                continue
            env = free[job[0]].pop()
            flying[executor.send(env, job[2].text)] = (env, job)
        waiting = list(reversed(blocked))
        results = executor.recv(1, poll_seconds)
        if not results:
            poll()
        for result in results:
            beat()
            env, (task, greedy, generation) = flying.pop(result.ticket)
            free[task].append(env)
            trials.append(
                {
                    "task": task,
                    "greedy": greedy,
                    "response": generation.text,
                    "tokens": len(generation.response_ids),
                    "reward": float(result.reward),
                    "info": plain(dict(result.info)),
                }
            )
    return trials


def table(trials: Sequence[Trial], judge: Judge) -> dict[str, Any]:
    """Summarise the trials of one task; infrastructure failures are left out and counted.

    The private score is that of the program with the best *public* score: choosing by the private one would be
    choosing on the report split.
    """
    counted = [trial for trial in trials if trial["info"].get("reward_valid", True)]
    drawn = [trial for trial in counted if not trial["greedy"]]
    greedy = next((trial for trial in counted if trial["greedy"]), None)
    valid = [trial for trial in drawn if judge.valid(trial["task"], trial["info"])]
    best = max(valid, key=lambda trial: judge.gain(trial["task"], trial["info"]["score"]), default=None)
    scores = [trial["info"]["score"] for trial in valid]
    return {
        "samples": len(drawn),
        "failed_infrastructure": len(trials) - len(counted),
        "valid_share": len(valid) / len(drawn) if drawn else math.nan,
        "mean_reward": float(np.mean([trial["reward"] for trial in drawn])) if drawn else math.nan,
        "mean_public_score": float(np.mean(scores)) if scores else math.nan,
        "best_public_score": best["info"]["score"] if best else math.nan,
        "best_private_score": _private(best, judge) if best else math.nan,
        "mean_duration": float(np.mean([trial["info"].get("duration") or 0.0 for trial in drawn])) if drawn else 0.0,
        "outcomes": dict(Counter(trial["info"].get("outcome", "") for trial in drawn)),
        "families": dict(Counter(family(str(trial["info"].get("program", ""))) or "none" for trial in valid)),
        "greedy_valid": bool(greedy and judge.valid(greedy["task"], greedy["info"])),
        "greedy_reward": greedy["reward"] if greedy else math.nan,
        "greedy_public_score": greedy["info"].get("score", math.nan) if greedy else math.nan,
        "best_response": best["response"] if best else "",
    }


def _private(trial: Trial, judge: Judge) -> float:
    path = str(trial["info"].get("submission_path", ""))
    return judge.private_score(trial["task"], Path(path)) if path else math.nan
