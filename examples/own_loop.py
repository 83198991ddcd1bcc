"""A learning loop of one's own on ``EnvPool``, without the trainer: asynchronous policy gradient in forty lines.

Programs run in the pool's slots while this thread writes new ones and learns. Run it with
``python -m examples.own_loop --updates 20``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import torch
import tyro

import mle_gym
from trainers.common import Generation, Policy
from trainers.common.transformers_generator import TransformersGenerator

__all__ = ["learn"]


def learn(
    env_id: str = "mle_gym/credit-default-v0",
    updates: int = 20,
    batch_size: int = 16,
    in_flight: int = 32,
    slots: int = 2,
    policy: str = "tiny",
    max_new_tokens: int = 320,
    learning_rate: float = 1e-3,
    seed: int = 0,
    env_kwargs: dict[str, Any] | None = None,
) -> list[float]:
    """Train a small language model on one task and return the mean reward of each batch.

    Args:
        env_id: What is to be solved.
        updates: Optimiser steps.
        batch_size: Programs in a step; the first that finish make it.
        in_flight: Programs that are written and not learned from yet.
        slots: Programs that run at once.
        policy: Name or folder of a causal language model.
        max_new_tokens: Longest response.
        learning_rate: Of Adam.
        seed: Seeds sampling and the environments.
        env_kwargs: Arguments of gym.make.
    """
    if env_kwargs is None:
        env_kwargs = {"reward": "normalized", "token_budget": 130, "time_limit": 2.0}
    model = Policy.load(policy)
    writer = TransformersGenerator(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    open_tickets: dict[int, Generation] = {}
    finished: list[tuple[Generation, float]] = []
    means: list[float] = []
    baseline, launched = None, 0
    with mle_gym.EnvPool([partial(gym.make, env_id, **env_kwargs)] * in_flight, slots) as pool:
        idle = pool.reset(seed=seed)
        while len(means) < updates:
            # Every idle environment gets a program of the newest policy.
            prompts = [str(result.next_obs) for result in idle]
            written = writer.generate(prompts, temperature=1.0, max_new_tokens=max_new_tokens, seed=seed + launched)
            for result, generation in zip(idle, written, strict=True):
                open_tickets[pool.send(result.env_index, generation.text)] = generation
            launched += len(idle)
            # Whatever has finished is learned from; a failure of the machine says nothing about a program.
            idle = pool.recv(min_ready=min(batch_size, len(open_tickets)))
            ended = [(open_tickets.pop(result.ticket), result) for result in idle]
            finished += [(written, result.reward) for written, result in ended if result.info["reward_valid"]]
            while len(finished) >= batch_size and len(means) < updates:
                batch, finished = finished[:batch_size], finished[batch_size:]
                mean = sum(reward for _, reward in batch) / batch_size
                baseline = mean if baseline is None else 0.9 * baseline + 0.1 * mean
                _step(model, optimizer, [g for g, _ in batch], [reward - baseline for _, reward in batch])
                writer.sync(version=len(means) + 1)
                means.append(mean)
                print(f"update {len(means)}: mean reward {mean:.3f}", flush=True)
    return means


def _step(
    model: Policy, optimizer: torch.optim.Optimizer, generations: Sequence[Generation], advantages: Sequence[float]
) -> None:
    """Follow the policy gradient once; tokens of an older policy count by their probability ratio, at most 2."""
    scored = model.token_logprobs([g.prompt_ids for g in generations], [g.response_ids for g in generations])
    behaviour = torch.zeros_like(scored.logprobs)
    recorded = [value for g in generations for value in g.logprobs]
    behaviour[scored.mask] = torch.tensor(recorded, device=behaviour.device)
    ratio = (scored.logprobs.detach() - behaviour).exp().clamp(max=2.0)
    gain = torch.tensor(advantages, device=ratio.device)
    loss = -(ratio * scored.logprobs * gain.unsqueeze(1)).sum() / scored.mask.sum()
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
    optimizer.step()


if __name__ == "__main__":
    tyro.cli(learn)
