"""The survival of the time to being dropped: against scipy, by hand, and undoing a selection."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from trainers.common.inclusion import Inclusion, survival
from trainers.common.weights import LEAST_INCLUSION, sample_weights


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=60))
def test_survival_is_the_kaplan_meier_curve_of_scipy(rows: list[tuple[int, bool]]) -> None:
    times = np.array([float(time) for time, _ in rows])
    events = np.array([event for _, event in rows])
    curve = ecdf(CensoredData.right_censored(times, ~events)).sf
    at = np.arange(0, 14) - 0.5  # between whole numbers, where left and right limits agree
    # scipy's last step is nan where the last times are all censored; before that both are the product-limit estimate.
    expected = curve.evaluate(at)
    known = np.isfinite(expected)
    assert survival(times, events, at)[known] == pytest.approx(expected[known], abs=1e-12)


def test_an_event_at_the_very_age_does_not_count() -> None:
    """2 of 4 are at risk at 3 and one drops; what ends at 3 itself was still there."""
    times, events = [1.0, 2.0, 3.0, 4.0], [False, True, True, False]
    assert survival(times, events, [2.0, 2.5, 3.0, 3.5, 9.0]).tolist() == pytest.approx([1, 2 / 3, 2 / 3, 1 / 3, 1 / 3])


def race(inclusion: Inclusion, start: int, launched_at: float, seconds: list[float], batch: int) -> np.ndarray:
    """Launch, finish the fastest, ask for their G, drop the others; returns G in order of completion."""
    tickets = list(range(start, start + len(seconds)))
    inclusion.launch(tickets)
    order = sorted(tickets, key=lambda ticket: seconds[ticket - start])
    for ticket in order[:batch]:
        inclusion.finish(ticket, launched_at, launched_at + seconds[ticket - start], valid=True)
    likely = inclusion.probabilities(order[:batch], order[batch:])
    inclusion.settle(order[:batch], order[batch:])
    for ticket in order[batch:]:
        inclusion.finish(ticket, launched_at, inclusion.now, valid=False)
    return likely


def test_a_batch_is_weighed_by_earlier_ones_only() -> None:
    inclusion = Inclusion()
    assert race(inclusion, 0, 0.0, [1, 2, 3, 9], 2).tolist() == [1.0, 1.0]  # two dropped at the age of 2
    # At 2: {1, 2, 2 dropped, 2 dropped}, so 3 at risk and 2 events. Ages 1 and 5 of the second race.
    assert race(inclusion, 4, 100.0, [1, 5, 7, 8], 2).tolist() == pytest.approx([1.0, 1 / 3])
    # Now also {1, 5, 5 dropped, 5 dropped}: 6 at risk at 2, 3 at risk at 5.
    likely = race(inclusion, 8, 200.0, [2, 3, 5, 6, 9], 4)
    assert likely.tolist() == pytest.approx([1.0, 4 / 6, 4 / 6, 4 / 6 * 1 / 3])


def test_what_is_under_way_is_at_risk_up_to_now() -> None:
    inclusion = Inclusion()
    inclusion.launch([0, 1, 2])
    inclusion.finish(0, 0.0, 4.0, valid=True)
    inclusion.settle([0], [1])  # dropped at the age of 4, while 2 runs on
    inclusion.launch([3])
    inclusion.finish(3, 4.0, 10.0, valid=True)
    # At 4: ages 4 (safe), 4 (dropped), and 10 of ticket 2, which still runs.
    assert inclusion.probabilities([3]).tolist() == pytest.approx([2 / 3])


def test_under_an_age_limit_waiting_is_part_of_the_risk() -> None:
    finished, taken = Inclusion("finished"), Inclusion("taken")
    for inclusion in (finished, taken):
        inclusion.launch([0, 1, 2])
        inclusion.finish(0, 0.0, 1.0, valid=True)
        inclusion.finish(1, 0.0, 6.0, valid=True)
        inclusion.settle([1], [2])  # dropped at 6; ticket 0 has finished at 1 and waits
    # Safe at 1, ticket 0 is not at risk at 6; waiting until then, it is, and is asked about at the age of 6 itself.
    inclusion_of = {each.safe_when: each for each in (finished, taken)}
    inclusion_of["finished"].launch([3])
    inclusion_of["finished"].finish(3, 6.0, 13.0, valid=True)
    assert inclusion_of["finished"].probabilities([0, 3]).tolist() == pytest.approx([1.0, 1 / 2])
    inclusion_of["taken"].launch([3])
    inclusion_of["taken"].finish(3, 6.0, 13.0, valid=True)
    assert inclusion_of["taken"].probabilities([3]).tolist() == pytest.approx([2 / 3])


def test_nothing_dropped_means_exactly_one() -> None:
    inclusion = Inclusion()
    rng = np.random.default_rng(0)
    for batch in range(20):
        tickets = list(range(8 * batch, 8 * batch + 8))
        inclusion.launch(tickets)
        for ticket in tickets:
            inclusion.finish(ticket, inclusion.now, inclusion.now + float(rng.gamma(1.0)), valid=True)
        likely = inclusion.probabilities(tickets)
        weights = sample_weights(np.zeros(8), np.ones(8, dtype=bool), rule="inclusion", inclusion=likely)
        assert weights.values.tolist() == [1.0] * 8
        inclusion.settle(tickets, [])


def test_a_masked_action_is_no_evidence_and_a_late_stamp_is_taken() -> None:
    inclusion = Inclusion()
    inclusion.launch([0, 1, 2])
    inclusion.finish(0, 1.0, 2.0, valid=False)
    inclusion.finish(1, 1.0, 5.0, valid=True)
    inclusion.settle([1], [2])
    assert sorted(row[0] for row in inclusion.state()["lives"]) == [1, 2]
    inclusion.finish(2, 3.0, 5.5, valid=False)  # it was launched at 3, so it was dropped at the age of 2
    assert [row[1:] for row in inclusion.state()["lives"] if row[0] == 2] == [[3.0, None, 5.0, True]]


def test_it_goes_on_where_it_was_and_forgets_the_oldest() -> None:
    one = Inclusion(window=10)
    for number in range(6):
        race(one, 4 * number, 50.0 * number, [1, 2 + number, 3 + number, 9], 2)
    two = Inclusion(window=10)
    two.restore(json.loads(json.dumps(one.state())))
    assert two.state() == one.state()
    assert len(two.state()["lives"]) == 10
    seconds = [2.5, 4, 6, 7]
    assert race(two, 99, 500.0, seconds, 3).tolist() == race(one, 99, 500.0, seconds, 3).tolist()


def test_the_weights_undo_dropping_at_random_ages() -> None:
    """Dropped after Exp(mean 10 s), whatever runs: half of the launched take 10 s, and exp(-1) of them get through.

    Weighted, the trained share of slow actions is one half again; unweighted it is exp(-1) / (exp(-1) + exp(-0.1)).
    """
    rng = np.random.default_rng(1)
    inclusion = Inclusion()
    plain = weighted = total = 0.0
    for number in range(300):
        tickets = list(range(32 * number, 32 * number + 32))
        born = inclusion.now
        inclusion.launch(tickets)
        slow = rng.random(32) < 0.5
        seconds, fates = np.where(slow, 10.0, 1.0), rng.exponential(10.0, 32)
        events = sorted([(min(s, c), t, c < s) for s, c, t in zip(seconds, fates, tickets, strict=True)])
        batch = [ticket for _, ticket, gone in events if not gone]
        for age, ticket, gone in events:
            inclusion.finish(ticket, born, born + age, valid=True)
            if gone:
                inclusion.settle([], [ticket])
        likely = inclusion.probabilities(batch)
        inclusion.settle(batch, [])
        if number < 100:
            continue
        weights = sample_weights(np.zeros(len(batch)), np.ones(len(batch), bool), rule="inclusion", inclusion=likely)
        chosen = slow[np.array(batch) - tickets[0]]
        plain += chosen.sum()
        weighted += (weights.values * chosen).sum()
        total += len(batch)
    assert plain / total == pytest.approx(np.exp(-1) / (np.exp(-1) + np.exp(-0.1)), abs=0.02)
    assert weighted / total == pytest.approx(0.5, abs=0.02)


def test_what_hardly_ever_gets_through_is_unsupported() -> None:
    weights = sample_weights([1, 1, 1, 1], [True] * 4, rule="inclusion", inclusion=[1.0, 0.5, 0.01, 0.0])
    inverse = np.array([1.0, 2.0, 1 / LEAST_INCLUSION, 1 / LEAST_INCLUSION])
    assert weights.values == pytest.approx(inverse / inverse.mean())
    assert weights.unsupported == 0.5
    with pytest.raises(ValueError, match="needs the probability"):
        sample_weights([1.0], [True], rule="inclusion")
    with pytest.raises(ValueError, match="inclusion must be 1 numbers"):
        sample_weights([1.0], [True], rule="inclusion", inclusion=[float("nan")])


def test_impossible_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        Inclusion(window=0)
