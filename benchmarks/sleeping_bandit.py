"""The trainer itself on programs that really sleep: what it trains beside what a simulated clock says it would."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from transformers.utils.logging import disable_progress_bar

from benchmarks.common import print_table
from benchmarks.selection import Kind, Simulation, TokenPolicy
from mle_gym.info import empty_info
from mle_gym.spaces import Utf8
from trainers.async_ppo.async_ppo import make_admission
from trainers.async_ppo.run import run_training
from trainers.common.checkpoint import Checkpoints
from trainers.common.config import TrainConfig
from trainers.common.schema import build

__all__ = ["SleepingBandit", "real_sleep"]

_LETTERS = "abcdefghij"
_SECONDS = dict.fromkeys(_LETTERS, 0.1) | {"a": 1.0, "b": 1.0}
"""First letter -> seconds; two of ten are slow."""
_SLOW = 0.5
"""Seconds beyond which an action is slow."""
_STRETCH = (0.8, 1.25)
_ID = "benchmarks.sleeping_bandit:SleepingBandit-v0"
_RULES: dict[str, dict[str, Any]] = {
    "oldest_first": {"rule": "oldest_first", "lookahead": 2},
    "in_order": {"rule": "in_order", "lookahead": 2},
    "drop_stale, 2 updates": {"rule": "drop_stale", "multiplier": 2.0, "max_lag": 2},
    "race, m = 1.5, cancel": {"rule": "race", "multiplier": 1.5, "leftovers": "cancel"},
}


class SleepingBandit(gym.Env[str, str]):
    """The first letter says how long a step sleeps; the reward is the same for all."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self) -> None:
        self.action_space = Utf8(100)
        self.observation_space = Utf8(100)
        self.cancel_event: threading.Event | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Show the prompt."""
        super().reset(seed=seed)
        return "ab", dict(empty_info())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Sleep, or until cancelled."""
        start = time.monotonic()
        # A sum that depends on the whole text spreads the durations a little, like those of real programs.
        low, high = _STRETCH
        factor = low + (high - low) * (sum(map(ord, action)) * 0.618 % 1.0)
        cancel = self.cancel_event or threading.Event()
        cancelled = cancel.wait(_SECONDS.get(action[:1], 0.1) * factor)
        info = dict(empty_info()) | {"duration": time.monotonic() - start, "outcome": "scored", "score": 1.0}
        if cancelled:
            info |= {"outcome": "cancelled", "reward_valid": False, "score": float("nan")}
        return "ab", 0.0 if cancelled else 1.0, True, False, info


gym.register("SleepingBandit-v0", entry_point="benchmarks.sleeping_bandit:SleepingBandit", order_enforce=False)


def real_sleep(folder: Path, *, updates: int, seed: int) -> dict[str, Any]:
    """Run the trainer with a frozen language model under several rules; print and return the trained shares.

    Args:
        folder: For the model and the runs.
        updates: Batches of 16 for each rule.
        seed: Of the runs.
    """
    model = _language_model(folder / "model")
    found: dict[str, Any] = {}
    for name, admission in _RULES.items():
        config = build(
            TrainConfig,
            {
                "env": {"ids": [_ID], "slots": 32},
                "policy": {"name": str(model)},
                "generation": {"max_new_tokens": 4},
                "admission": admission,
                "weights": {"rule": "inclusion"},
                # Too small to change a float32 parameter: the policy's share stays what it is.
                "algorithm": {"learning_rate": 1e-12},
                "schedule": {"updates": updates, "batch_size": 16, "checkpoint_every": 1000, "evaluate": 0},
                "run": str(folder / name.replace(" ", "-")),
                "seed": seed,
            },
        )
        with contextlib.redirect_stdout(io.StringIO()):
            run_training(config)
        found[name] = _compare(config, updates, seed)
    print_table(
        ("admission", "slow launched", "slow trained", "weighted", "simulated, as launched", "lag", "seconds"),
        [
            (
                name,
                f"{row['launched']:.1%}",
                f"{row['trained']:.1%}",
                f"{row['weighted']:.1%}",
                f"{row['simulated']:.1%} ± {row['simulated_deviation']:.1%}",
                f"{row['lag']:.2f}",
                f"{row['seconds']:.1f}",
            )
            for name, row in found.items()
        ],
        title="The trainer on programs that really sleep (0.1 s and 1 s), with inclusion weights, beside the simulated",
    )
    return found


def _compare(config: TrainConfig, updates: int, seed: int) -> dict[str, Any]:
    """What a run launched and trained, and what the simulation trains of the same policy share."""
    run = Path(config.run)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    slow = {row["ticket"]: _SECONDS.get(row["response"][:1], 0.1) > _SLOW for row in samples}
    checkpoint = Checkpoints(run / "checkpoints").latest()
    assert checkpoint is not None
    audit = Checkpoints.load(checkpoint)["audit"]
    trained = [row[0] for row in audit["tickets"] if row[3] == "trained"]
    weights = {row[0]: row[2] for row in audit["learned"]}
    share = float(np.mean(list(slow.values())))
    pauses = [row["learn_seconds"] + row["generate_seconds"] for row in metrics[1:]] or [0.1]
    kinds = (Kind("fast", 1 - share, 1.0, 0.1), Kind("slow", share, 1.0, 1.0))
    simulated = []
    for number in range(20):
        policy = TokenPolicy(kinds)
        simulation = Simulation(make_admission(config), policy, 32, seed + number, pause=float(np.mean(pauses)))
        simulated.append(np.mean([batch.kinds.mean() for batch in simulation.batches(updates)]))
    return {
        "launched": share,
        "trained": float(np.mean([slow[ticket] for ticket in trained])),
        "weighted": sum(weights[ticket] for ticket in trained if slow[ticket]) / sum(weights.values()),
        "simulated": float(np.mean(simulated)),
        "simulated_deviation": float(np.std(simulated)),
        "lag": float(np.mean([row["lag_mean"] for row in metrics])),
        "seconds": metrics[-1]["seconds"],
    }


def _language_model(folder: Path) -> Path:
    """A random language model whose every token is a letter, on disk like any other."""
    names = ("<end>", *_LETTERS)
    letters = Tokenizer(BPE({letter: index for index, letter in enumerate(names)}, []))
    letters.pre_tokenizer = ByteLevel(add_prefix_space=False)
    letters.decoder = ByteLevelDecoder()
    letters.add_special_tokens(["<end>"])
    disable_progress_bar()
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(names),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            max_position_embeddings=64,
            tie_word_embeddings=True,
            eos_token_id=0,
            bos_token_id=None,
            pad_token_id=None,
        )
    )
    model.generation_config.eos_token_id = 0
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<end>").save_pretrained(folder)
    return folder
