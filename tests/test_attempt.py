from __future__ import annotations

import math
from typing import Any

import pytest

from mle_gym.attempt import Attempt


def test_only_the_program_is_needed() -> None:
    attempt = Attempt.from_mapping({"program": "x = 1"})
    assert (attempt.program, attempt.plan, attempt.outcome) == ("x = 1", "", "")
    assert math.isnan(attempt.score)
    assert Attempt.from_mapping({"program": "", "score": 1}).score == 1


@pytest.mark.parametrize(
    ("values", "kind", "sentence"),
    [
        ({}, ValueError, "has no 'program'"),
        ({"program": "x", "scroe": 1.0}, ValueError, "did you mean 'score'"),
        ({"program": b"x"}, TypeError, r"\['program'\] is bytes; give a text"),
        ({"program": "x", "score": "0.5"}, TypeError, "give a number"),
        ({"program": "x", "score": True}, TypeError, "give a number"),
        ("x = 1", TypeError, "is str; give a dict"),
    ],
)
def test_bad_mappings(values: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        Attempt.from_mapping(values)
