"""Invariants under arbitrary events, and the bias of a race against closed-form numbers."""

from __future__ import annotations

import heapq
import json
import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.common.admission import Admission, AutoLookahead, CapacityGate, DropStale, InOrder, OldestFirst, Race

GATES = (OldestFirst, InOrder)
TOTALS = st.one_of(st.none(), st.integers(1, 8))
RULES = st.one_of(
    st.builds(
        Race,
        st.integers(1, 6),
        st.floats(1, 4, allow_nan=False),
        st.sampled_from(["keep", "cancel"]),
    ),
    *(st.builds(gate, st.integers(1, 6), st.integers(0, 4), TOTALS) for gate in GATES),
    *(
        st.builds(
            lambda gate, size, total, slots, most: gate(
                size, total=total, auto=AutoLookahead(slots, size, most=most, window=8)
            ),
            st.just(gate),
            st.integers(1, 4),
            TOTALS,
            st.integers(1, 8),
            st.integers(1, 4),
        )
        for gate in GATES
    ),
    st.builds(
        DropStale,
        st.integers(1, 6),
        st.floats(1, 4, allow_nan=False),
        st.integers(0, 3),
        st.sampled_from(["keep", "cancel"]),
    ),
)


def clone(rule: Admission) -> Admission:
    """The same rule, its state through JSON."""
    if isinstance(rule, Race):
        other: Admission = Race(rule.batch_size, rule.multiplier, rule.leftovers)
    elif isinstance(rule, DropStale):
        other = DropStale(rule.batch_size, rule.multiplier, rule.max_lag, rule.leftovers)
    else:
        assert isinstance(rule, CapacityGate)
        auto = rule.auto and AutoLookahead(rule.auto.slots, rule.batch_size, most=rule.auto.most, window=8)
        other = type(rule)(rule.batch_size, rule.lookahead, rule.total, auto)
    other.restore(json.loads(json.dumps(rule.state())))
    return other


@settings(max_examples=100, deadline=None)
@given(RULES, st.data())
def test_invariants_hold_after_every_event(rule: Admission, data: st.DataObject) -> None:
    ticket = 0
    trained: set[int] = set()
    masked: set[int] = set()
    dropped: set[int] = set()
    version: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 80))):
        events = []
        if rule.wanted() > 0:
            events.append("launch")
        if rule.running or rule.late:
            events.append("complete")
        if rule.ready():
            events.append("take")
        if rule.updating:
            events.append("advance")
        finished = isinstance(rule, CapacityGate) and rule.total is not None and rule.updates == rule.total
        if not events:
            assert finished, "a rule that waits for nothing"
            break
        if not rule.updating and not finished:
            assert rule.ready() or rule.wanted() > 0 or rule.running  # invariant 4
        event = data.draw(st.sampled_from(events))
        if data.draw(st.booleans()):
            twin = clone(rule)  # invariant 6: the twin takes over
            assert twin.state() == rule.state()
            rule = twin
        if event == "launch":
            rule.launch(ticket)
            version[ticket] = rule.updates
            ticket += 1
        elif event == "complete":
            chosen = data.draw(st.sampled_from(sorted({*rule.running, *rule.late})))
            valid = data.draw(st.booleans())
            late = chosen in rule.late
            seconds = data.draw(st.floats(0, 1e4))
            assert rule.complete(chosen, valid=valid, duration=seconds) == (valid and not late)
            if not late and not valid:
                masked.add(chosen)
        elif event == "take":
            oldest = sorted(rule.waiting)[: rule.batch_size]
            first = rule.waiting[: rule.batch_size]
            untrained = sorted({*rule.waiting, *rule.running})[: rule.batch_size]
            taken = rule.take()
            assert len(set(taken.batch)) == rule.batch_size  # invariant 2
            assert not set(taken.batch) & trained
            assert list(taken.batch) == (oldest if isinstance(rule, GATES) else list(first))
            trained |= set(taken.batch)
            dropped |= set(taken.dropped)
            lag = max(rule.updates - version[each] for each in taken.batch)
            if isinstance(rule, GATES):
                assert not dropped  # invariant 5
            if isinstance(rule, InOrder):
                assert list(taken.batch) == untrained
                assert lag <= (rule.lookahead if rule.auto is None else rule.auto.most)
            if isinstance(rule, DropStale):
                assert lag <= rule.max_lag
        else:
            taken = rule.advance()
            assert not taken.batch
            assert {*taken.dropped_running, *taken.abandoned} <= rule.late
            dropped |= set(taken.dropped)
        places = [set(rule.running), set(rule.waiting), trained, masked, dropped]
        assert sum(map(len, places)) == len(set().union(*places)) == ticket  # invariant 1
        assert len(rule.running) + len(rule.waiting) <= rule.in_flight_max  # invariant 3
        assert (rule.launched, rule.trained, rule.masked, rule.dropped) == (
            ticket,
            len(trained),
            len(masked),
            len(dropped),
        )


def test_wrong_events_are_refused() -> None:
    rule = Race(2, 1.0)
    with pytest.raises(RuntimeError, match="No batch is ready: 0 of 2"):
        rule.take()
    with pytest.raises(RuntimeError, match="without take"):
        rule.advance()
    with pytest.raises(KeyError, match="Ticket 7 is not in flight"):
        rule.complete(7, valid=True)
    rule.launch(0)
    with pytest.raises(ValueError, match="in flight already"):
        rule.launch(0)
    rule.launch(1)
    with pytest.raises(ValueError, match="No action may start"):
        rule.launch(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Race(0), "batch_size"),
        (lambda: Race(2, 0.5), "multiplier"),
        (lambda: Race(2, 2, "drop"), "leftovers"),  # type: ignore[arg-type]
        (lambda: OldestFirst(2, -1), "lookahead"),
        (lambda: InOrder(2, -1), "lookahead"),
        (lambda: DropStale(2, 0.5), "multiplier"),
        (lambda: DropStale(2, 2, -1), "max_lag"),
        (lambda: DropStale(2, 2, 1, "drop"), "leftovers"),  # type: ignore[arg-type]
        (lambda: AutoLookahead(0, 2), "slots"),
        (lambda: AutoLookahead(2, 2, quantile=0.0), "quantile"),
    ],
)
def test_impossible_rules_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def slow_share(rule: Admission, updates: int, *, slots: int | None = None, seed: int = 0) -> float:
    """Share of 10 s actions among the trained ones, when half of the launched take 10 s and half 1 s.

    Events happen at exact times; updates take none. ``slots`` limits how many run at once, None is no limit.
    """
    rng = np.random.default_rng(seed)
    clock, ticket = 0.0, 0
    seconds: dict[int, float] = {}
    running: list[tuple[float, int]] = []
    queue: list[int] = []
    slow = trained = 0
    while rule.updates < updates:
        for _ in range(rule.wanted()):
            seconds[ticket] = 10.0 if rng.random() < 0.5 else 1.0
            rule.launch(ticket)
            queue.append(ticket)
            ticket += 1
        while queue and (slots is None or len(running) < slots):
            chosen = queue.pop(0)
            if chosen not in rule.late:
                # Ties must not favour early tickets of the same duration over chance.
                heapq.heappush(running, (clock + seconds[chosen] + 1e-6 * rng.random(), chosen))
        clock, done = heapq.heappop(running)
        rule.complete(done, valid=True)
        while rule.ready():
            taken = rule.take()
            gone = set(taken.dropped_running)
            running = [item for item in running if item[1] not in gone]
            heapq.heapify(running)
            for cancelled in gone:
                rule.complete(cancelled, valid=False)
            slow += sum(seconds[item] > 5 for item in taken.batch)
            trained += len(taken.batch)
            gone = set(rule.advance().dropped_running)
            running = [item for item in running if item[1] not in gone]
            heapq.heapify(running)
            for cancelled in gone:
                rule.complete(cancelled, valid=False)
    return slow / trained


@pytest.mark.parametrize(("multiplier", "share"), [(1.0, 0.5), (1.25, 0.375), (1.5, 0.25), (2.0, 0.025), (3.0, 0.0)])
def test_cancelling_the_losers_of_a_race_starves_slow_actions(multiplier: float, share: float) -> None:
    """m B launched, half of them fast: min(B, fast) of the first B are fast. At m = 2 the mean of a cut binomial,
    0.4 * sqrt(2 B) / 2 / B below one half of 2 B, which is 0.025 at B = 128."""
    measured = slow_share(Race(128, multiplier, "cancel"), updates=60)
    assert measured == pytest.approx(share, abs=0.012)


def test_keeping_the_losers_restores_their_share() -> None:
    assert slow_share(Race(32, 2.0, "keep"), updates=400) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("slots", [None, 4, 16])
def test_a_gate_trains_what_it_launches(gate: type[CapacityGate], slots: int | None) -> None:
    assert slow_share(gate(32, 1), updates=300, slots=slots) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("leftovers", ["keep", "cancel"])
def test_a_bound_on_age_starves_what_runs_longer(leftovers: Literal["keep", "cancel"]) -> None:
    """128 run at once, the first 16 make a batch: a mean action is 8 updates old, and a 10 s action twice that."""
    starved = [slow_share(DropStale(16, 8.0, lag, leftovers), updates=400) for lag in (2, 4)]
    assert starved[0] < 0.02
    assert starved[0] <= starved[1] < 0.2
    assert slow_share(DropStale(16, 8.0, 100, leftovers), updates=1500) == pytest.approx(0.5, abs=0.02)


def test_the_look_ahead_follows_the_durations() -> None:
    """95 of 100 programs take 1 s, 5 take 10 s: at the 0.97 quantile 10 / 1.45 times 8 slots over batches of 4."""
    auto = AutoLookahead(8, 4, quantile=0.97, most=20, window=100)
    rule = OldestFirst(4, auto=auto)
    assert (rule.lookahead, rule.in_flight_max) == (1, 84)
    ticket = 0
    for update in range(25):
        while rule.wanted():
            rule.launch(ticket)
            ticket += 1
        for chosen in rule.running[:4]:
            rule.complete(chosen, valid=True, duration=10.0 if chosen % 20 == 0 else 1.0)
        rule.take()
        rule.advance()
        assert len(rule.running) + len(rule.waiting) <= rule.in_flight_max, update
    assert rule.lookahead == math.ceil(10 / 1.45 * 8 / 4)
    for _ in range(100):
        auto.observe(3.0)  # equal durations: slots / B
    auto.tune()
    assert auto.value == 2


def test_oldest_first_starts_nothing_that_no_update_would_train() -> None:
    rule = OldestFirst(2, lookahead=3, total=3)
    for ticket in range(6):
        rule.launch(ticket)
    assert rule.wanted() == 0
    rule.complete(5, valid=False)  # masked: its place is free again
    assert rule.wanted() == 1
