"""Our environments as the reward function of TRL's ``GRPOTrainer``: the programs of a batch are executed in parallel.

``pip install 'mle-gym[trl]'``, then ``python -m examples.trl_reward --steps 20``. GRPO waits for the slowest program of
each batch; ``mle-gym train`` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import gymnasium as gym
import tyro

import mle_gym

__all__ = ["EnvReward", "train"]


class EnvReward:
    """A reward function of TRL: executes each completion and returns its reward.

    Args:
        env_ids: The tasks. TRL hands over each row's other columns, and ``task`` is the one that names its environment.
        slots: Programs that run at once.
        env_kwargs: Arguments of gym.make, the same for every task.
        seed: Seeds the environments.
    """

    def __init__(self, env_ids: Sequence[str], slots: int = 2, *, seed: int = 0, **env_kwargs: Any) -> None:
        self._tasks = [env_id for env_id in env_ids for _ in range(slots)]
        makers = [partial(gym.make, env_id, **env_kwargs) for env_id in self._tasks]
        self.pool = mle_gym.EnvPool(makers, slots)
        self._prompts = {self._tasks[start.env_index]: str(start.obs) for start in self.pool.reset(seed=seed)}

    def rows(self, copies: int = 1) -> list[dict[str, str]]:
        """Rows of a dataset: the prompt of each task, and its name.

        Args:
            copies: Of each prompt; the trainer draws from the dataset's rows.
        """
        return [{"prompt": prompt, "task": task} for task, prompt in self._prompts.items()] * copies

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], task: Sequence[str], **_: Any
    ) -> list[float | None]:
        """Rewards in the order of the completions; None, which TRL leaves out, where the machine failed."""
        rewards: list[float | None] = [None] * len(completions)
        free = [*range(len(self._tasks))]
        waiting = [*range(len(completions))]
        running: dict[int, int] = {}
        while waiting or running:
            for index in list(waiting):
                env = next((env for env in free if self._tasks[env] == task[index]), None)
                if env is not None:
                    running[self.pool.send(env, _text(completions[index]))] = index
                    free.remove(env)
                    waiting.remove(index)
            for result in self.pool.recv():
                index = running.pop(result.ticket)
                rewards[index] = result.reward if result.info["reward_valid"] else None
                free.append(result.env_index)
        return rewards

    def close(self) -> None:
        """End everything that runs."""
        self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _text(completion: Any) -> str:
    """Return the answer's text; of a conversation, its last message's."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def train(
    env_ids: tuple[str, ...] = ("mle_gym/credit-default-v0",),
    steps: int = 20,
    batch_size: int = 16,
    slots: int = 2,
    policy: str = "tiny",
    max_new_tokens: int = 320,
    learning_rate: float = 1e-3,
    seed: int = 0,
    out: str = "runs/trl",
    env_kwargs: dict[str, Any] | None = None,
) -> list[dict[str, float]]:
    """Train a language model with TRL's GRPO on our tasks and return what it logged for each step.

    Args:
        env_ids: What is to be solved.
        steps: Optimiser steps.
        batch_size: Programs in a step, and in a group: they share a prompt.
        slots: Programs that run at once.
        policy: Name or folder of a causal language model.
        max_new_tokens: Longest response.
        learning_rate: Of AdamW.
        seed: Seeds sampling and the environments.
        out: TRL's output folder.
        env_kwargs: Arguments of gym.make.
    """
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from trainers.common import Policy

    if env_kwargs is None:
        env_kwargs = {"reward": "normalized", "token_budget": 130, "time_limit": 2.0}
    model = Policy.load(policy)
    with EnvReward(env_ids, slots, seed=seed, **env_kwargs) as reward:
        chats = bool(getattr(model.tokenizer, "chat_template", None))
        rows: list[dict[str, Any]] = [
            {
                **row,
                "prompt": [{"role": "user", "content": row["prompt"]}] if chats else row["prompt"] + model.SEPARATOR,
            }
            for row in reward.rows(copies=batch_size)
        ]
        arguments = GRPOConfig(
            output_dir=out,
            max_steps=steps,
            per_device_train_batch_size=batch_size,
            num_generations=batch_size,
            max_completion_length=max_new_tokens,
            learning_rate=learning_rate,
            lr_scheduler_type="constant",
            temperature=1.0,
            seed=seed,
            use_cpu=model.device.type == "cpu",
            bf16=False,
            activation_checkpointing=False,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
        )
        trainer = GRPOTrainer(
            model=model.model,
            reward_funcs=reward,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=model.tokenizer,
        )
        trainer.train()
    return [entry for entry in trainer.state.log_history if "reward" in entry]


if __name__ == "__main__":
    tyro.cli(train)
