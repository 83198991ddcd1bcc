"""``mle-gym run``: one program through an environment."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from mle_gym.commands.base import UserError, console, parse, resolve_id, write_json

__all__ = ["main"]

_PHASES = (("queue", "queue_time"), ("set-up", "setup_time"), ("grading", "grade_time"))


@dataclass(frozen=True)
class Options:
    """Run one program through an environment and print what it earned.

    The exit code is 0 whenever the step worked, however bad the program is; 1 when the machine failed, 2 for a mistake
    in the command.
    """

    id: Annotated[Positional[str], arg(metavar="ID")]
    """Environment id or task name, for example mle_gym/breast-cancer-v0 or breast-cancer."""
    program: Annotated[Positional[str], arg(metavar="PROGRAM")]
    """File with a Python program; - reads standard input. A file ending in .md is a whole answer: plan and block."""
    reward: str = "paper"
    """Reward function: paper, medal, percentile, normalized or package.module:function."""
    reward_split: str | None = None
    """Rows that are graded: public, private or all; by default public where the answers can be cut, else all."""
    instrumenter: str = "probe"
    """Where milestones come from: probe or none."""
    sandbox: str = "local"
    """Backend that runs the program."""
    time_limit: float | None = None
    """Seconds the program may run; the task's own by default."""
    memory_mb: int | None = None
    """MiB it may use; the task's own by default."""
    cores: int | None = None
    """Exclusive cores; by default the task's, else 1. 0 shares them."""
    data: str = "auto"
    """Which data of a competition: auto, prepared or synthetic (stand-ins)."""
    size: str | None = None
    """Size of stand-in data: tiny or small."""
    data_dir: str | None = None
    """Where prepared data live."""
    seed: int = 0
    """Seed of the environment and, as $MLE_SEED, of the program."""
    allow_unsafe: bool = False
    """Run even where this machine cannot enforce the isolation that was asked for."""
    submission: Path | None = None
    """Copy the submission to this file."""
    json: bool = False
    """Print the whole info as JSON."""


def main(argv: Sequence[str]) -> int:
    """Run one program through an environment and print what it earned."""
    import gymnasium as gym

    from mle_gym.shared import shared_data, shared_sandbox

    options = parse(Options, argv, command="run")
    env_id = resolve_id(options.id)
    action = _read_action(options.program)
    if options.seed < 0:
        raise UserError(f"--seed {options.seed} is negative; give 0 or more.")
    if (goal := options.submission) is not None and (goal.is_dir() or not goal.parent.is_dir()):
        raise UserError(f"--submission {goal} is a folder or lies in none; give the path of a file.")
    keywords = ("reward", "instrumenter", "sandbox", "time_limit", "memory_mb", "cores", "allow_unsafe")
    arguments = {name: getattr(options, name) for name in (*keywords, "data", "size", "data_dir")}
    if options.reward_split is not None:
        arguments["reward_split"] = options.reward_split
    try:
        env = gym.make(env_id, **arguments)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error
    try:
        try:
            env.reset(seed=options.seed)
            # Started here and not by the first step, so that a sandbox that does not exist is the user's mistake.
            shared_sandbox(env.unwrapped.config)  # type: ignore[attr-defined]
        except ValueError as error:
            raise UserError(str(error)) from error
        if not env.action_space.contains(action):
            raise UserError(f"{options.program} is not text the environment takes ({env.action_space}).")
        _, reward, _, _, info = env.step(action)
        if options.submission is not None and info["submission_path"]:
            shutil.copyfile(info["submission_path"], options.submission)
        note = shared_data(env.unwrapped.task, env.unwrapped.config).note  # type: ignore[attr-defined]
    finally:
        env.close()
    if options.json:
        # The environment's own copy is gone with it.
        path = str(options.submission) if options.submission is not None and info["submission_path"] else ""
        write_json(
            {"id": env_id, "reward": float(reward), **info, "submission_path": path, "note": note, **_milestones(info)}
        )
    else:
        _show(env_id, float(reward), info, options, note)
    return 0 if info["reward_valid"] else 1


def _read_action(program: str) -> str:
    """Return the text handed to ``step``: a program as one fenced block, or a whole answer as it is."""
    if program == "-":
        return _fence(sys.stdin.read())
    path = Path(program)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a regular file; give a Python program, or - for standard input.")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"There is no file {path}; give a Python program, or - for standard input.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    return text if path.suffix == ".md" else _fence(text)


def _fence(source: str) -> str:
    """Return ``source`` as one Markdown block, whatever backticks it holds."""
    mark = "```"
    while mark in source:
        mark += "`"
    return f"{mark}python\n{source.rstrip()}\n{mark}\n"


def _milestones(info: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """Return the milestone flags by name."""
    from mle_gym.instrument.base import MILESTONES

    return {"milestones": {name: bool(flag) for name, flag in zip(MILESTONES, info["milestones"], strict=True)}}


def _show(env_id: str, reward: float, info: Mapping[str, Any], options: Options, note: str) -> None:
    """Print the step as one screen."""
    out = console()
    flags = _milestones(info)["milestones"]
    rows = [("outcome", info["outcome"]), ("reward", f"{reward:.4f}  ({options.reward}, {info['reward_split']} split)")]
    if info["score"] == info["score"]:
        rows.append(("score", f"{info['score']:.6g}"))
    if info["medal"]:
        rows.append(("medal", info["medal"]))
    if info["percentile"] == info["percentile"]:
        rows.append(("percentile", f"{info['percentile']:.1%}"))
    rows += [
        ("duration", f"{info['duration']:.3f} s  (the program; {info['cpu_time']:.3f} s of CPU)"),
        ("around it", ", ".join(f"{what} {info[key]:.3f} s" for what, key in _PHASES)),
        ("peak memory", f"{info['peak_memory']:.0f} MiB"),
        ("milestones", "  ".join(f"{'+' if flag else '-'} {name}" for name, flag in flags.items())),
        ("sandbox", info["sandbox"]),
    ]
    if note:
        rows.insert(0, ("data", note))
    if info["message"]:
        rows.append(("message", info["message"]))
    out.print(env_id, style="bold", markup=False, highlight=False)
    for name, value in rows:
        out.print(f"  {name:<12} {value}", markup=False, highlight=False, soft_wrap=True)
    if info["terminal_output"].strip():
        out.print("\nThe program printed:", markup=False)
        out.print(info["terminal_output"].rstrip(), markup=False, highlight=False, soft_wrap=True)
