"""Facts about the interpreter that runs programs: its version, its packages, and whether it can parse a text."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["Interpreter"]

LONGEST = 64 * 1024
"""Bytes of the longest program that is parsed."""

_PACKAGES = {
    "numpy": "numpy",
    "pandas": "pandas",
    "scikit-learn": "sklearn",
    "scipy": "scipy",
    "statsmodels": "statsmodels",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
    "torch": "torch",
    "torchvision": "torchvision",
    "timm": "timm",
    "transformers": "transformers",
    "tensorflow": "tensorflow",
    "pillow": "PIL",
    "opencv": "cv2",
    "nltk": "nltk",
    "torch-geometric": "torch_geometric",
    "bayesian-optimization": "bayes_opt",
}
"""Name shown to the model -> module; only those that the interpreter can find are ever shown."""

_PROBE = (
    "import importlib.util as u, sys; print(*sys.version_info[:2]); "
    "print(*[m for m in sys.argv[1:] if u.find_spec(m) is not None])"
)
_CHECK = "import sys; compile(sys.stdin.buffer.read(), '<program>', 'exec', dont_inherit=True)"
_FILE = "<mle_gym program>"
_filter_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter on this machine."""

    path: str
    version: tuple[int, int]
    """Major and minor."""
    packages: tuple[str, ...]
    """Machine-learning packages that it can import, by the name a user installs."""

    @staticmethod
    def find(path: str | None = None) -> Interpreter:
        """Return the facts of the interpreter at ``path`` (None: the running one); found once, then cached.

        Raises:
            ValueError: There is no working interpreter at ``path``.
        """
        return _find(str(path or sys.executable))

    def syntax_error(self, source: str) -> str:
        """One sentence on why ``source`` is not a Python program; ``""`` when it is one.

        The program is compiled, never run, and shows no warning. Text that exhausts the compiler (nesting too deep, a
        null byte) is a syntax error as well, and so is a program of more than :data:`LONGEST` bytes: the parser takes
        time and memory out of proportion for some texts, in the trainer's own process.
        """
        size = len(source.encode("utf-8", "replace"))
        if size > LONGEST:
            return f"The program has {size:,} bytes; at most {LONGEST:,} are parsed."
        if self.version == sys.version_info[:2]:
            return _compile_here(source)
        # Another version has another grammar, so only that interpreter can tell.
        command = [self.path, "-I", "-S", "-W", "ignore", "-c", _CHECK]
        try:
            done = subprocess.run(
                command, input=source.encode("utf-8", "replace"), capture_output=True, timeout=20, check=False
            )
        except subprocess.TimeoutExpired:
            return "The program takes more than 20 s to parse."
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return "" if done.returncode == 0 else last or f"The parser ended with code {done.returncode}."


@lru_cache(maxsize=16)
def _find(path: str) -> Interpreter:
    if Path(path) == Path(sys.executable):
        names = tuple(name for name, module in _PACKAGES.items() if importlib.util.find_spec(module) is not None)
        return Interpreter(path, sys.version_info[:2], names)
    try:
        done = subprocess.run(
            [path, "-I", "-c", _PROBE, *_PACKAGES.values()], capture_output=True, text=True, timeout=60, check=True
        )
        version, modules = done.stdout.splitlines()
        major, minor = map(int, version.split())
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ValueError(
            f"python={path!r} is not a working Python interpreter ({error}); give the path of one, or leave it out."
        ) from error
    found = set(modules.split())
    return Interpreter(path, (major, minor), tuple(name for name, module in _PACKAGES.items() if module in found))


def _compile_here(source: str) -> str:
    # A permanent filter, narrow and put in front: warnings.catch_warnings would swap the filters of all threads.
    with _filter_lock:
        warnings.filterwarnings("ignore", module=_FILE)
    try:
        compile(source, _FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        return f"{type(error).__name__}: {error.msg}{where}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {str(error) or 'nested too deeply for the parser'}"
    return ""
