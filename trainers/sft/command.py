"""``mle-gym sft``: demonstrations, warm start, evaluation."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from mle_gym.commands.base import UserError, parse
from trainers.common.load_model import PolicyUnavailable
from trainers.common.policy import Policy
from trainers.sft import demonstrations as demos
from trainers.sft.evaluation import evaluate
from trainers.sft.sft import SftConfig, prompts_of, tokenizer_texts, warm_start
from trainers.sft.tiny_model import make_tiny

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Warm-start a policy on executed demonstrations."""
    config = parse(SftConfig, argv, command="sft")
    _check(config)
    torch.set_num_threads(config.threads)
    path = config.demonstrations
    if config.collect:
        # New ones go beside the weights unless told where: the shipped file may lie in an installed package.
        path = config.out / demos.SHIPPED.name if path == demos.SHIPPED else path
        path.parent.mkdir(parents=True, exist_ok=True)
        counts = {name: max(1, round(count * config.scale)) for name, count in demos.TASKS.items()}
        demos.save(demos.collect(counts, seed=config.seed), path)
    try:
        demonstrations = demos.load(path)
    except (OSError, EOFError, ValueError) as error:
        raise UserError(str(error)) from error
    prompts = prompts_of(demonstrations, config.token_budgets)
    if config.policy == "new":
        texts = tokenizer_texts(demonstrations, prompts, seed=config.seed)
        policy = make_tiny(texts, config.shape, seed=config.seed)
    else:
        try:
            policy = Policy.load(config.policy, dtype=config.dtype, device=config.device)
        except PolicyUnavailable as error:
            raise UserError(str(error)) from error
    size = sum(p.numel() for p in policy.parameters())
    print(
        f"{len(demonstrations)} demonstrations, {size / 1e6:.2f} million parameters, {config.updates} updates",
        flush=True,
    )

    def report(update: int, loss: float, seconds: float) -> None:
        if update == 1 or update % 10 == 0 or update == config.updates:
            print(f"update {update}: loss {loss:.3f} nats a token, {seconds:.0f} s", flush=True)

    start = time.perf_counter()
    losses = warm_start(policy, demonstrations, prompts, config, report=report)
    policy.save(config.out)
    _write_record(config, losses, time.perf_counter() - start)
    print(f"saved to {config.out}", flush=True)
    if config.evaluate:
        for temperature, count in ((1.0, config.evaluate), (0.0, 1)):
            result = evaluate(
                policy,
                config.env,
                count,
                temperature=temperature,
                max_new_tokens=config.max_new_tokens,
                seed=config.seed,
                env_kwargs={"token_budget": config.env_token_budget},
            )
            print(result, flush=True)
    return 0


def _check(config: SftConfig) -> None:
    """Refuse what cannot work before any time is spent.

    Raises:
        UserError: A number is out of its range, or the folder cannot be written.
    """
    for name in ("updates", "group", "batch_size", "threads"):
        if hasattr(config, name) and getattr(config, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} {getattr(config, name)} is too small; give at least 1.")
    if not config.token_budgets or min(config.token_budgets) < 1:
        raise UserError("--token-budgets needs at least one number, each above 0.")
    if not 0 < config.learning_rate < float("inf"):
        raise UserError(f"--learning-rate {config.learning_rate} has to be a number above 0.")
    try:
        config.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {config.out} cannot be made a folder: {error.strerror}.") from error


def _write_record(config: SftConfig, losses: Sequence[float], seconds: float) -> None:
    """Keep beside the weights how they were made."""
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(config).items()}
    settings["demonstrations"] = Path(settings["demonstrations"]).name
    settings.pop("out")
    record = {"config": settings, "final_loss": round(losses[-1], 4), "seconds": round(seconds, 1)}
    (config.out / "sft.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
