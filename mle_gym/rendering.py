"""A step as something to look at."""

from __future__ import annotations

import math

from mle_gym.outcome import StepInfo
from mle_gym.tasks.task import Task

__all__ = ["as_text", "show"]


def as_text(task: Task, step: int, info: StepInfo, reward: float) -> str:
    """Return a step as plain text: a headline, the program and what it printed."""
    parts = [headline(task, step, info, reward)]
    parts += [f"{name}:\n{text.rstrip()}" for name, text in _parts(info)]
    return "\n\n".join(parts) + "\n"


def show(task: Task, step: int, info: StepInfo, reward: float) -> None:
    """Print a step on the terminal, the program highlighted."""
    from rich.console import Console, Group
    from rich.panel import Panel
    from rich.syntax import Syntax
    from rich.text import Text

    parts = [
        Panel(Syntax(text.rstrip(), "python") if name == "program" else Text(text.rstrip()), title=name)
        for name, text in _parts(info)
    ]
    Console().print(Group(Text(headline(task, step, info, reward), style="bold"), *parts))


def headline(task: Task, step: int, info: StepInfo, reward: float) -> str:
    """Return one line: task, step, outcome, score, reward, seconds."""
    if step == 0:
        return f"{task.name}: a new episode, data {info['data']}"
    score = "" if math.isnan(info["score"]) else f", {task.metric} {info['score']:.5g}"
    medal = f" ({info['medal']})" if info["medal"] else ""
    earned = f"reward {reward:.5g}" if info["reward_valid"] else "no reward (masked)"
    return f"{task.name}, step {step}: {info['outcome']}{score}{medal}, {earned}, ran {info['duration']:.2f} s"


def _parts(info: StepInfo) -> list[tuple[str, str]]:
    pairs = [
        ("message", info["message"]),
        ("plan", info["plan"]),
        ("program", info["program"]),
        ("output", info["terminal_output"]),
    ]
    return [(name, text) for name, text in pairs if text]
