from __future__ import annotations

import gymnasium as gym
import pytest

from tests.envs.programs import COPY, answer

ID = "mle_gym/credit-default-v0"


def test_ansi() -> None:
    env = gym.make(ID, render_mode="ansi", cores=0)
    env.reset(seed=0)
    assert env.render() == "credit-default: a new episode, data offline\n"
    env.step(answer(COPY + "print('hello')", plan="Copy it."))
    text = env.render()
    assert isinstance(text, str)
    headline, *rest = text.split("\n\n")
    assert headline.startswith("credit-default, step 1: scored, roc_auc 0.5, reward 0.5, ran ")
    assert rest == ["plan:\nCopy it.", f"program:\n{COPY}print('hello')", "output:\nhello\n"]
    env.close()


def test_ansi_of_a_failure() -> None:
    env = gym.make(ID, render_mode="ansi", cores=0)
    env.reset(seed=0)
    env.step("words")
    text = env.render()
    assert isinstance(text, str)
    assert "no_program, reward -10, ran 0.00 s" in text
    assert "message:\nThe answer has no ```python code block." in text


def test_human_prints_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    env = gym.make(ID, render_mode="human", cores=0)
    env.reset(seed=0)
    env.step(answer("print('[bold]not markup[/bold]')"))
    out = capsys.readouterr().out
    assert "credit-default: a new episode" in out
    assert "no_submission" in out
    assert "[bold]not markup[/bold]" in out
    assert env.render() is None


def test_list_mode_collects_frames() -> None:
    env = gym.make(ID, render_mode="ansi_list", cores=0)
    env.reset(seed=0)
    env.step("words")
    frames = env.render()
    assert isinstance(frames, list)
    assert len(frames) == 2


def test_without_a_mode_there_is_nothing_to_see() -> None:
    env = gym.make(ID).unwrapped
    env.reset(seed=0)
    assert env.render() is None
