"""Facts about this machine that belong beside every measurement."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

__all__ = ["Machine", "missing_packages"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a number depends on besides the code."""

    system: str
    """Operating system, kernel and architecture."""
    python: str
    processor: str
    """Model name of the CPU."""
    cores: int
    """Cores this process may use."""
    memory_gb: float
    """GiB of memory in all; less where a control group says so."""
    gpus: tuple[str, ...]
    """Names as the driver gives them; empty without a driver."""
    packages: dict[str, str]
    """Versions of the packages that do the work, where installed."""

    @classmethod
    def here(cls) -> Machine:
        """Return the facts of the running machine; reads files and asks the GPU driver once."""
        return _here()


@lru_cache(maxsize=1)
def _here() -> Machine:
    names = ("mle-gym", "gymnasium", "numpy", "pandas", "scikit-learn", "torch", "transformers")
    versions = {name: found for name in names if (found := _version(name)) is not None}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        processor=_processor(),
        cores=cores,
        memory_gb=_memory_bytes() / 2**30,
        gpus=_gpus(),
        packages=versions,
    )


def missing_packages(distribution: str = "mle-gym") -> dict[str, tuple[str, ...]]:
    """Return each optional extra of an installed distribution with those of its packages that are not installed.

    Raises:
        PackageNotFoundError: The distribution is not installed.
    """
    extras: dict[str, list[str]] = {}
    for line in requires(distribution) or ():
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name and name[0] != distribution:
            extras.setdefault(extra[1], []).append(name[0])
    return {extra: tuple(name for name in names if _version(name) is None) for extra, names in sorted(extras.items())}


def _version(name: str) -> str | None:
    """Return a distribution's version, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the CPU's model name."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    """Return the bytes of memory this process can ever have."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        return min(total, int(text))
    return total


def _gpus() -> tuple[str, ...]:
    """Return the GPUs the NVIDIA driver lists."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(answer.stdout.strip().splitlines()) if answer.returncode == 0 else ()
