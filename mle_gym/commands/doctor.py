"""``mle-gym doctor``: what this machine can do, on one screen."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mle_gym.commands.base import console, parse, write_json
from mle_gym.machine import Machine, missing_packages

__all__ = ["main"]

_GROUPS = ("mle_gym.tasks", "mle_gym.sandboxes", "mle_gym.algorithms", "mle_gym.commands")


@dataclass(frozen=True)
class Options:
    """Say what this machine can enforce and what is missing: sandbox, cores, packages, GPU, data, disk."""

    json: bool = False
    """Print JSON."""


def main(argv: Sequence[str]) -> int:
    """Say what this machine can enforce and what is missing."""
    options = parse(Options, argv, command="doctor")
    facts = {
        "machine": asdict(Machine.here()),
        "sandbox": _sandbox(),
        "extras": {name: list(missing) for name, missing in missing_packages().items() if name not in ("all", "dev")},
        "plugins": {group: sorted(point.name for point in entry_points(group=group)) for group in _GROUPS},
        "data": _data(),
        "disk": _disk(),
    }
    if options.json:
        write_json(facts)
    else:
        _show(facts)
    return 0


def _sandbox() -> dict[str, Any]:
    """Return what the local backend enforces here, from its self-test, and why it cannot isolate where it cannot."""
    from mle_gym.sandbox import make_sandbox
    from mle_gym.sandbox.base import SandboxUnavailable

    problem = ""
    for allow_unsafe in (False, True):
        try:
            with make_sandbox("local", allow_unsafe=allow_unsafe) as sandbox:
                return {"tier": sandbox.tier, "enforcement": dict(sandbox.enforcement()), "problem": problem}
        except SandboxUnavailable as error:
            problem = str(error)
    return {"tier": "", "enforcement": {}, "problem": problem}


def _data() -> dict[str, Any]:
    """Return where prepared data live, what is there, and which tasks cannot be used."""
    from mle_gym.tasks.mlebench.task import find_prepared
    from mle_gym.tasks.registry import list_tasks
    from mle_gym.tasks.store import data_root

    root = data_root()
    files = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else []
    return {
        "folder": str(root),
        "megabytes": sum(path.stat().st_size for path in files) / 1e6,
        "tasks": len(list_tasks()),
        "prepared": [task.name for task in list_tasks("mlebench") if find_prepared(task.name)],
    }


def _disk() -> dict[str, float]:
    """Return the free GB where data and working folders live."""
    from mle_gym.tasks.store import data_root

    places = {"data": data_root(), "temporary": Path(tempfile.gettempdir())}
    return {f"{name} ({place})": shutil.disk_usage(_existing(place)).free / 1e9 for name, place in places.items()}


def _existing(path: Path) -> Path:
    """Return the nearest folder above ``path`` that exists."""
    while not path.exists():
        path = path.parent
    return path


def _show(facts: dict[str, Any]) -> None:
    """Print the facts as one screen."""
    out = console()

    def line(name: str, value: object) -> None:
        out.print(f"{name:<12}{value}", markup=False, highlight=False, soft_wrap=True)

    machine = facts["machine"]
    line("system", f"{machine['system']}, Python {machine['python']}")
    line("processor", f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:.1f} GiB")
    slots = max(machine["cores"] - 1, 1)
    line("slots", f"{slots} program(s) at once beside a learner, {machine['cores']} without one (cores=1)")
    line("gpu", ", ".join(machine["gpus"]) or "none")
    line("versions", ", ".join(f"{name} {version}" for name, version in machine["packages"].items()))
    for extra, missing in facts["extras"].items():
        hint = f"missing {', '.join(missing)}: pip install 'mle-gym[{extra}]'" if missing else "installed"
        line(f"[{extra}]", hint)
    sandbox = facts["sandbox"]
    line("sandbox", f"local, tier {sandbox['tier'] or 'none'}")
    if sandbox["problem"]:
        line("  problem", sandbox["problem"])
    by_strength: dict[str, list[str]] = {}
    for name, strength in sandbox["enforcement"].items():
        by_strength.setdefault(strength, []).append(name.replace("_", " "))
    for strength, names in sorted(by_strength.items()):
        line(f"  {strength}", ", ".join(names))
    data = facts["data"]
    line("tasks", f"{data['tasks']}; data in {data['folder']} ({data['megabytes']:.0f} MB)")
    line("mle-bench", f"real data prepared for {', '.join(data['prepared']) or 'no competition: stand-ins are used'}")
    line("disk free", ", ".join(f"{name} {free:.0f} GB" for name, free in facts["disk"].items()))
    plugins = {group.partition(".")[2]: names for group, names in facts["plugins"].items() if names}
    line("plug-ins", "; ".join(f"{kind}: {', '.join(names)}" for kind, names in plugins.items()) or "none")
