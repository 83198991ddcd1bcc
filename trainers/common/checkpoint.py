"""Checkpoints that are whole or not there, and that restore a run bit for bit."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from trainers.common.policy import Policy

__all__ = ["Checkpoints"]

_TENSOR = "__tensor__"


class Checkpoints:
    """Numbered checkpoints in a folder; the last ``keep`` stay.

    Each holds ``policy/`` (loadable by name like any model), ``tensors.safetensors`` and ``state.json``. It is written
    under another name and renamed when complete, so a kill never leaves half a checkpoint in place.

    Args:
        folder: Created when missing.
        keep: Checkpoints kept.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep
        folder.mkdir(parents=True, exist_ok=True)

    def latest(self) -> Path | None:
        """Folder of the newest complete checkpoint."""
        found = self._complete()
        return found[-1] if found else None

    def save(self, number: int, policy: Policy, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint.

        Args:
            number: Updates finished.
            policy: Its weights and tokenizer.
            state: Nested dicts and lists of JSON values and tensors.
        """
        final = self.folder / f"{number:06d}"
        part = self.folder / f".{number:06d}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        policy.save(part / "policy")
        tensors: dict[str, torch.Tensor] = {}
        document = _split({**state, "random": random_state()}, "", tensors)
        save_file(tensors, part / "tensors.safetensors")
        (part / "state.json").write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
        for path in part.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        # Folders are only ever renamed into and out of their places: a kill leaves no half of one under its number.
        aside = self._set_aside([final] if final.exists() else [])
        os.replace(part, final)
        aside += self._set_aside(self._complete()[: -self.keep])
        for folder in aside:
            shutil.rmtree(folder)
        return final

    def _complete(self) -> list[Path]:
        """Folders of complete checkpoints, oldest first."""
        return sorted(path for path in self.folder.iterdir() if path.name.isdigit())

    def _set_aside(self, folders: list[Path]) -> list[Path]:
        moved = [self.folder / f".{folder.name}.old" for folder in folders]
        for folder, aside in zip(folders, moved, strict=True):
            shutil.rmtree(aside, ignore_errors=True)
            os.replace(folder, aside)
        return moved

    @staticmethod
    def load(folder: Path) -> dict[str, Any]:
        """Read the state of a checkpoint; ``restore_random`` takes its key ``random``."""
        tensors = load_file(folder / "tensors.safetensors")
        state = _join(json.loads((folder / "state.json").read_text(encoding="utf-8")), tensors)
        assert isinstance(state, dict)
        return state


def random_state() -> dict[str, Any]:
    """State of every global random generator: python, numpy, torch, CUDA."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "python": list(random.getstate()),
        "numpy": [str(name), np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = list(torch.cuda.get_rng_state_all())
    return state


def restore_random(state: Mapping[str, Any]) -> None:
    """Continue from ``random_state()``."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])


def _split(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Move tensors out of a nested value, leaving their names; dicts become lists of pairs to keep their key types."""
    if isinstance(value, torch.Tensor):
        tensors[path] = value.detach().cpu().contiguous().clone()
        return {_TENSOR: path}
    if isinstance(value, Mapping):
        return {"items": [[key, _split(item, f"{path}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_split(item, f"{path}/{index}", tensors) for index, item in enumerate(value)]
    return value


def _join(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(value, dict):
        if _TENSOR in value:
            return tensors[value[_TENSOR]]
        return {key: _join(item, tensors) for key, item in value["items"]}
    if isinstance(value, list):
        return [_join(item, tensors) for item in value]
    return value
