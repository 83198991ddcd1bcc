from __future__ import annotations

import copy
import json
import pickle

import pytest
from gymnasium.vector.utils import batch_space, iterate
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.response import Response
from mle_gym.spaces import MAX_LENGTH, Utf8


@given(st.text(max_size=50))
def test_contains_is_length_and_encodability(text: str) -> None:
    # hypothesis' text() holds no surrogates unless asked for, so all of it is UTF-8.
    assert (text in Utf8(20)) == (len(text) <= 20)


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"], "\ud800", "a\udfff"])
def test_does_not_contain(value: object) -> None:
    assert value not in Utf8()


def test_null_bytes_and_the_empty_text_are_text() -> None:
    assert "" in Utf8()
    assert "\0\1" in Utf8()


def test_equality_pickle_and_repr() -> None:
    space = Utf8(100, sampler="program", seed=3)
    other = pickle.loads(pickle.dumps(space))
    assert other == space
    assert other.sample() == space.sample()
    assert hash(copy.deepcopy(space)) == hash(space)
    assert space != Utf8(101, sampler="program")
    assert space != Utf8(100)
    assert space != "Utf8(100)"
    assert len(repr(space)) < 50
    assert len(pickle.dumps(Utf8())) < 300


@pytest.mark.parametrize("sampler", ["text", "program"])
def test_samples_are_members_and_follow_the_seed(sampler: str) -> None:
    first, second = Utf8(sampler=sampler, seed=1), Utf8(sampler=sampler, seed=1)
    drawn = [first.sample() for _ in range(30)]
    assert drawn == [second.sample() for _ in range(30)]
    assert all(text in first for text in drawn)
    assert len(set(drawn)) >= 3
    assert json.loads(json.dumps(first.to_jsonable(drawn))) == drawn


def test_sampled_programs_parse_and_differ_in_kind() -> None:
    space = Utf8(sampler="program", seed=0)
    programs = {Response.parse(space.sample()).program for _ in range(60)}
    assert "" not in programs
    assert len({program.splitlines()[-2] for program in programs}) >= 3
    for program in programs:
        compile(program, "sample", "exec")
        assert "MLE_SAMPLE_SUBMISSION" in program


def test_sample_respects_max_length() -> None:
    assert all(len(Utf8(5, seed=i).sample()) <= 5 for i in range(20))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="max_length is 0"):
        Utf8(0)
    with pytest.raises(ValueError, match="sampler is 'poem'"):
        Utf8(sampler="poem")
    with pytest.raises(ValueError, match="neither mask"):
        Utf8().sample(mask=[1])  # type: ignore[arg-type]


def test_batches_are_tuples_of_text() -> None:
    batch = batch_space(Utf8(), 3)
    actions = batch.sample()
    assert len(actions) == 3
    assert list(iterate(batch, actions)) == list(actions)
    assert Utf8().max_length == MAX_LENGTH
