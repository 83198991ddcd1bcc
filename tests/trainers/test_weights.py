"""Sample weights against hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.common.weights import sample_weights


def test_duration_weights_are_duration_over_the_batch_mean() -> None:
    weights = sample_weights([1.0, 3.0, 8.0], [True, True, True])
    assert weights.values.tolist() == [0.25, 0.75, 2.0]  # mean 4 s
    assert weights.lost_mass == 0.0
    assert weights.effective == pytest.approx(9 / (0.0625 + 0.5625 + 4.0))


def test_a_crash_at_import_is_charged_the_floor() -> None:
    weights = sample_weights([0.0, 0.3], [True, True], min_duration=0.1)
    assert weights.values.tolist() == pytest.approx([0.5, 1.5])


def test_masked_samples_leave_before_the_mean_is_taken() -> None:
    weights = sample_weights([1.0, 1000.0, 3.0, float("nan")], [True, False, True, False])
    assert weights.values.tolist() == [0.5, 0.0, 1.5, 0.0]


def test_the_cap_loses_mass_and_says_how_much() -> None:
    weights = sample_weights([1.0, 3.0, 8.0], [True, True, True], cap=1.5)
    assert weights.values.tolist() == [0.25, 0.75, 1.5]
    assert weights.lost_mass == pytest.approx(0.5)


def test_without_a_rule_every_valid_sample_counts_once() -> None:
    weights = sample_weights([1.0, 3.0, 8.0], [True, False, True], rule="none")
    assert weights.values.tolist() == [1.0, 0.0, 1.0]
    assert weights.effective == 2.0


def test_an_all_masked_batch_has_no_mass() -> None:
    weights = sample_weights([1.0, 2.0], [False, False])
    assert weights.values.tolist() == [0.0, 0.0]
    assert weights.effective == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.booleans()), min_size=1, max_size=50),
    st.sampled_from(["none", "duration", "inclusion"]),
    st.one_of(st.none(), st.floats(0.01, 10)),
)
def test_weights_sum_to_the_valid_samples_less_the_lost_mass(
    rows: list[tuple[float, bool]], rule: str, cap: float | None
) -> None:
    durations, valid = zip(*rows, strict=True)
    likely = 1 / (1 + np.array(durations))
    weights = sample_weights(durations, valid, rule=rule, cap=cap, inclusion=likely)  # type: ignore[arg-type]
    assert weights.values.sum() + weights.lost_mass == pytest.approx(sum(valid))
    assert np.all(weights.values >= 0)
    assert weights.effective <= sum(valid) + 1e-9


def test_duration_weights_undo_a_selection_by_one_over_duration() -> None:
    """Self-normalised importance sampling: q(a) ~ pi(a) / dt(a), so E_q[w f] = E_pi[f] with w = dt / E_q[dt]."""
    policy, seconds, value = np.array([0.6, 0.3, 0.1]), np.array([1.0, 10.0, 100.0]), np.array([0.2, -1.0, 3.0])
    counts = np.array([600, 30, 1])  # in the ratio of pi / dt
    assert np.allclose(counts / counts[0], policy / seconds / policy[0])
    weights = sample_weights(np.repeat(seconds, counts), np.ones(counts.sum(), dtype=bool)).values
    assert np.mean(weights * np.repeat(value, counts)) == pytest.approx(policy @ value)


@pytest.mark.parametrize(
    ("durations", "valid", "message"),
    [([1.0], [True, False], "one length"), ([-1.0], [True], "not negative"), ([float("inf")], [True], "finite")],
)
def test_impossible_durations_are_refused(durations: list[float], valid: list[bool], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_weights(durations, valid)
    with pytest.raises(ValueError, match="Unknown weight rule"):
        sample_weights([1.0], [True], rule="sqrt")  # type: ignore[arg-type]
