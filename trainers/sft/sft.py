"""Supervised warm start: a policy learns to write the demonstrations' answers to the environments' prompts."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import torch
import tyro

from trainers.common.policy import Policy
from trainers.sft.demonstrations import SHIPPED, Demonstration
from trainers.sft.tiny_model import TinyConfig

__all__ = ["SftConfig", "prompts_of", "warm_start"]


@dataclass(frozen=True)
class SftConfig:
    """Warm-start a policy on executed demonstrations, and save it."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("runs/sft")
    """Folder that receives weights and tokenizer."""
    policy: str = "new"
    """new: a tiny language model from random weights; else a name or folder as Policy.load takes it."""
    demonstrations: Path = SHIPPED
    """File of demonstrations; the one in this package by default."""
    collect: bool = False
    """Draw and execute new demonstrations first, and write them to the file."""
    scale: float = 1.0
    """With --collect: how many demonstrations, relative to the shipped number."""
    updates: int = 120
    """Optimiser steps."""
    batch_size: int = 32
    """Demonstrations in a step."""
    group: int = 4
    """Demonstrations of one prompt in a batch; the prompt is run once for them."""
    learning_rate: float = 4e-3
    """Highest step size of AdamW; about 1e-5 for a pretrained model."""
    warmup: float = 0.1
    """Share of the updates in which the step size rises."""
    weight_decay: float = 0.1
    """Of AdamW."""
    token_budgets: tuple[int, ...] = (130, 130, 130, 100, 180, 256)
    """Prompt budgets, drawn per group."""
    seed: int = 0
    """Seeds weights, order and, with --collect, the programs."""
    dtype: str = "float32"
    """Type of the weights."""
    device: str = "auto"
    """cpu, cuda or auto."""
    threads: int = 1
    """CPU threads."""
    evaluate: int = 0
    """Programs to sample and execute afterwards; 0 skips it."""
    env: str = "mle_gym/credit-default-v0"
    """Environment that is evaluated on."""
    env_token_budget: int = 130
    """Its prompt budget."""
    max_new_tokens: int = 320
    """Longest response in the evaluation."""
    shape: TinyConfig = field(default_factory=TinyConfig)
    """Shape of a new tiny language model."""


def prompts_of(demonstrations: Sequence[Demonstration], budgets: Sequence[int]) -> dict[tuple[str, int], str]:
    """Return the observation of each demonstrated environment at each token budget."""
    import gymnasium as gym

    import mle_gym  # noqa: F401  (registers the environments)

    prompts: dict[tuple[str, int], str] = {}
    for task in dict.fromkeys(d.task for d in demonstrations):
        for budget in dict.fromkeys(budgets):
            env = gym.make(task, token_budget=budget)
            prompts[task, budget] = str(env.reset(seed=0)[0])
            env.close()
    return prompts


def warm_start(
    policy: Policy,
    demonstrations: Sequence[Demonstration],
    prompts: dict[tuple[str, int], str],
    config: SftConfig,
    *,
    report: Callable[[int, float, float], None] = lambda update, loss, seconds: None,
) -> list[float]:
    """Minimise the mean negative log-likelihood of response tokens, in place.

    Args:
        policy: Learns.
        demonstrations: What it learns from.
        prompts: (environment id, budget) -> prompt, from :func:`prompts_of`.
        config: Optimiser and batches.
        report: Receives update, loss (nats per token) and seconds since the start.

    Returns:
        The loss of every update.
    """
    responses = {d: policy.encode_response(d.response) for d in demonstrations}
    encoded = {key: policy.encode_prompt(text) for key, text in prompts.items()}
    parameters = list(policy.parameters())
    matrices = [p for p in parameters if p.ndim > 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(0.9, 0.95),
    )
    rising = max(1, round(config.warmup * config.updates))

    def rate(update: int) -> float:
        if update < rising:
            return (update + 1) / rising
        done = (update - rising) / max(1, config.updates - rising)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * done))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses: list[float] = []
    start = time.perf_counter()
    groups = _groups(demonstrations, config.group, random.Random(config.seed))
    draw = random.Random(f"{config.seed}/budgets")
    for update in range(config.updates):
        batch = [next(groups) for _ in range(max(1, config.batch_size // config.group))]
        total = sum(len(responses[d]) for group in batch for d in group)
        loss = 0.0
        optimizer.zero_grad(set_to_none=True)
        for group in batch:
            prompt = encoded[group[0].task, draw.choice(config.token_budgets)]
            scored = policy.token_logprobs([prompt] * len(group), [responses[d] for d in group])
            part = -scored.logprobs.sum() / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss)
        report(update + 1, loss, time.perf_counter() - start)
    return losses


def _groups(demonstrations: Sequence[Demonstration], size: int, draw: random.Random) -> Iterator[list[Demonstration]]:
    """Yield groups of one task, each demonstration once per pass, groups of all tasks in random order."""
    by_task: dict[str, list[Demonstration]] = {}
    for demonstration in demonstrations:
        by_task.setdefault(demonstration.task, []).append(demonstration)
    while True:
        groups = []
        for members in by_task.values():
            shuffled = draw.sample(members, len(members))
            groups += [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
        draw.shuffle(groups)
        yield from groups
