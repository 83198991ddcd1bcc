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
from trainers.sft.renaming import draw_renaming
from trainers.sft.tiny_model import TinyConfig

__all__ = ["SftConfig", "columns_of", "prompts_of", "tokenizer_texts", "warm_start"]


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
    """Draw and execute new demonstrations first; they go to the file, or beside the weights where none is named."""
    scale: float = 1.0
    """With --collect: how many demonstrations, relative to the shipped number."""
    updates: int = 440
    """Optimiser steps."""
    batch_size: int = 16
    """Demonstrations in a step."""
    group: int = 4
    """Demonstrations of one prompt in a batch; the prompt is run once for them."""
    learning_rate: float = 4e-3
    """Highest step size of AdamW; about 1e-5 for a pretrained model."""
    warmup: float = 0.1
    """Share of the updates in which the step size rises."""
    weight_decay: float = 0.1
    """Of AdamW."""
    rename: float = 0.7
    """Share of groups on tables whose columns get new names, so that names are copied from prompts, not remembered."""
    token_budgets: tuple[int, ...] = (130, 130, 130, 100, 115, 150, 180, 256)
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


def columns_of(demonstrations: Sequence[Demonstration]) -> dict[str, tuple[str, ...]]:
    """Return, for each demonstrated environment, the columns that may be renamed; none where it is not a table."""
    from mle_gym.survey import survey
    from mle_gym.tasks import get_task

    columns: dict[str, tuple[str, ...]] = {}
    for env_id in dict.fromkeys(d.task for d in demonstrations):
        task = get_task(env_id.removeprefix("mle_gym/").removesuffix("-v0"))
        facts = {fact.name: fact for fact in survey(task.load().public_dir)}
        # A matrix of class columns has names that are values of the target.
        table = task.kind.startswith("tabular") and len(task.target) == 1
        columns[env_id] = facts["train.csv"].columns if table else ()
    return columns


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
    columns = columns_of(demonstrations)
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
    draw = random.Random(f"{config.seed}/prompts")
    for update in range(config.updates):
        batch = []
        for _ in range(max(1, config.batch_size // config.group)):
            group = next(groups)
            texts = [d.response for d in group]
            prompt = prompts[group[0].task, draw.choice(config.token_budgets)]
            if columns[group[0].task] and draw.random() < config.rename:
                renaming = draw_renaming(columns[group[0].task], draw)
                prompt, texts = renaming.prompt(prompt), [renaming.program(text) for text in texts]
            batch.append((policy.encode_prompt(prompt), [policy.encode_response(text) for text in texts]))
        total = sum(len(response) for _, responses in batch for response in responses)
        loss = 0.0
        optimizer.zero_grad(set_to_none=True)
        for prompt_ids, responses in batch:
            scored = policy.token_logprobs([prompt_ids] * len(responses), responses)
            part = -scored.logprobs.sum() / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss)
        report(update + 1, loss, time.perf_counter() - start)
    return losses


def tokenizer_texts(
    demonstrations: Sequence[Demonstration], prompts: dict[tuple[str, int], str], *, renamed: int = 8, seed: int = 0
) -> list[str]:
    """Return what a new tokenizer is trained on: responses, and prompts under their own and ``renamed`` other names."""
    columns = columns_of(demonstrations)
    draw = random.Random(f"{seed}/tokenizer")
    texts = [d.response for d in demonstrations]
    for (env_id, _), text in prompts.items():
        texts.append(text)
        texts += [draw_renaming(columns[env_id], draw).prompt(text) for _ in range(renamed) if columns[env_id]]
    return texts


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
