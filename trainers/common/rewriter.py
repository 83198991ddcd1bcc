"""The frozen base model that marks milestones, in this process: a backend of the instrumenter ``llm``."""

from __future__ import annotations

import threading
from pathlib import Path

__all__ = ["TransformersRewriter"]


class TransformersRewriter:
    """Answers the instrumenter's prompt with a language model of transformers, greedily.

    This is the paper's set-up (arXiv 2509.01684) when ``model`` is what the policy started from: the copy here never
    learns. A call is one generation, and calls from many threads take turns, so on a CPU it costs about as much time
    as sampling the program did; the answers are kept on disk by the instrumenter.

    Args:
        model: As for ``policy.name``: ``tiny``, ``smollm2``, a Hugging Face name, a folder, or a ``.gguf`` file.
        device: A torch device, or ``auto``: the GPU if there is one.
        dtype: ``auto`` is float32 on a CPU and the checkpoint's own on a GPU.
        max_new_tokens: Longest answer; by default half as long again as the program, with room for the prints.

    Raises:
        ValueError: There is no such model, or a package for it is missing.
    """

    def __init__(
        self, *, model: str, device: str = "auto", dtype: str = "auto", max_new_tokens: int | None = None
    ) -> None:
        try:
            from trainers.common.load_model import PolicyUnavailable
            from trainers.common.policy import Policy
            from trainers.common.transformers_generator import TransformersGenerator
        except ImportError as error:
            raise ValueError(
                f"The instrumenter's model needs a package ({error}): pip install 'mle-gym[ppo]'."
            ) from error
        if max_new_tokens is not None and max_new_tokens < 1:
            raise ValueError(f"max_new_tokens={max_new_tokens} of the instrumenter must be at least 1.")
        try:
            self._policy = Policy.load(model, dtype=dtype, device=device)
        except PolicyUnavailable as error:
            raise ValueError(f"The instrumenter's model is missing. {error}") from error
        folder = Path(model).expanduser()
        # A folder may hold another model tomorrow.
        name = f"{folder.resolve()} {folder.stat().st_mtime_ns}" if folder.exists() else model
        self.identity = f"transformers {name} {dtype} {max_new_tokens}"
        self._generator = TransformersGenerator(self._policy, batch_size=1, share=True)
        self._limit = max_new_tokens
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        """Return the model's answer; "" where the prompt leaves no room for one in its context."""
        with self._lock:
            used = len(self._policy.encode_prompt(prompt))
            limit = min(self._limit or used + used // 2 + 64, self._policy.context_length - used)
            if limit < 1:
                return ""
            return self._generator.generate([prompt], temperature=0.0, max_new_tokens=limit, seed=0)[0].text
