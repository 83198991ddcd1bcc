from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym import rewards
from mle_gym.grading.grade import Grade
from mle_gym.rewards import Judged, get_reward, register_reward


def judged(score: float | None, higher: bool = True, credit: float = 0.0, medal: str = "", **facts: float) -> Judged:
    grade = None if score is None else Grade(score, higher, "public", medal, facts.pop("percentile", math.nan))
    return Judged(grade, credit, **facts)


@pytest.mark.parametrize(
    ("case", "reward"),
    [
        (judged(None), -10.0),
        (judged(None, credit=0.7), -9.3),
        (judged(0.83), 0.83),
        (judged(0.0), 0.0),
        (judged(0.25, higher=False), -0.25),
        (judged(11.48, higher=False), -9.0),
        (judged(math.inf, higher=False), -9.0),
        (judged(1e9), 10.0),
        (judged(0.83, credit=0.7), 0.83),
    ],
)
def test_paper(case: Judged, reward: float) -> None:
    assert get_reward("paper")(case) == pytest.approx(reward)


@given(st.floats(allow_nan=False), st.booleans(), st.integers(0, 7))
def test_paper_ranks_every_valid_submission_above_every_failure(score: float, higher: bool, reached: int) -> None:
    # 0.7 of credit at most, so a failure earns -9.3 at best and a valid submission -9 at worst.
    assert get_reward("paper")(judged(score, higher)) > get_reward("paper")(judged(None, credit=0.1 * reached))


@pytest.mark.parametrize(("medal", "reward"), [("gold", 1.0), ("silver", 2 / 3), ("bronze", 1 / 3), ("", 0.0)])
def test_medal(medal: str, reward: float) -> None:
    assert get_reward("medal")(judged(0.5, medal=medal)) == pytest.approx(reward)
    assert get_reward("medal")(judged(None, credit=0.2)) == pytest.approx(-0.8)


def test_percentile() -> None:
    assert get_reward("percentile")(judged(0.5, percentile=0.62)) == 0.62
    assert get_reward("percentile")(judged(None, credit=0.1)) == pytest.approx(-0.9)


@pytest.mark.parametrize(
    ("score", "higher", "sample", "gold", "reward"),
    [
        (0.75, True, 0.5, 1.0, 0.5),
        (0.4, True, 0.5, 1.0, 0.0),
        (1.2, True, 0.5, 1.0, 1.0),
        (15.0, False, 20.0, 10.0, 0.5),
        (25.0, False, 20.0, 10.0, 0.0),
        (5.0, False, 20.0, 10.0, 1.0),
        (-1.0, True, -3.0, 1.0, 0.5),
        # The sample submission earns gold already.
        (0.9, True, 0.9, 0.8, 1.0),
        (0.7, True, 0.9, 0.8, 0.0),
    ],
)
def test_normalized(score: float, higher: bool, sample: float, gold: float, reward: float) -> None:
    assert get_reward("normalized")(judged(score, higher, sample_score=sample, gold=gold)) == pytest.approx(reward)


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"reward='papr' is not known; did you mean 'paper'\?"):
        get_reward("papr")
    with pytest.raises(ValueError, match="cannot be imported"):
        get_reward("tests.nowhere:reward")
    with pytest.raises(ValueError, match="cannot be imported"):
        get_reward("math:no_such_function")


@pytest.fixture
def registry() -> Iterator[None]:
    before = dict(rewards.REWARDS)
    yield
    rewards.REWARDS.clear()
    rewards.REWARDS.update(before)


def failing(judged: Judged) -> float:
    return 0.0 if judged.grade is None else 1.0


@pytest.mark.usefixtures("registry")
def test_own_rewards() -> None:
    register_reward("valid", failing)
    assert get_reward("valid")(judged(0.3)) == 1.0
    register_reward("valid", failing)  # The same again is no clash.
    with pytest.raises(ValueError, match="'valid' is registered already"):
        register_reward("valid", rewards.paper)
    with pytest.raises(ValueError, match=r"needs='golden'.*did you mean 'gold'"):
        register_reward("other", failing, needs=("golden",))


def test_own_reward_by_import_path() -> None:
    assert get_reward("mle_gym.rewards:paper")(judged(None)) == -10.0
    assert get_reward(f"{__name__}:failing")(judged(1.0)) == 1.0


def test_a_reward_has_to_be_finite() -> None:
    with pytest.raises(ValueError, match="has to be finite"):
        rewards.Reward("bad", lambda judged: math.nan)(judged(1.0))
