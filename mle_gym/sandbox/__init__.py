"""Sandboxes: run programs that nobody has reason to trust, and tell truthfully what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import (
    Execution,
    ExecutionTiming,
    Limits,
    Program,
    Reached,
    Sandbox,
    SandboxUnavailable,
    Status,
)

if TYPE_CHECKING:
    from .cores import CoreLease
    from .local import LocalSandbox
    from .registry import make_sandbox

__all__ = [
    "CoreLease",
    "Execution",
    "ExecutionTiming",
    "Limits",
    "LocalSandbox",
    "Program",
    "Reached",
    "Sandbox",
    "SandboxUnavailable",
    "Status",
    "make_sandbox",
]

_LAZY = {"CoreLease": "cores", "LocalSandbox": "local", "make_sandbox": "registry"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
