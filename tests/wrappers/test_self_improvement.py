from __future__ import annotations

import pickle
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import data_equivalence

from mle_gym.attempt import Attempt
from mle_gym.pool import EnvPool
from mle_gym.wrappers import Archive, SelfImprovement
from tests.envs.programs import COPY, answer
from tests.envs.schema import check_info

ID = "mle_gym/credit-default-v0"
# Predicts from one column, so that it scores otherwise than the constant.
BETTER = (
    "import pandas as pd\n"
    "test = pd.read_csv('input/test.csv')\n"
    "test['default'] = 1 / (1 + test['Seniority'])\n"
    "test[['id', 'default']].to_csv('submission.csv', index=False)\n"
    "print('one column')\n"
)


def _make(probability: float = 1.0, **kwargs: Any) -> SelfImprovement:
    return SelfImprovement(gym.make(ID, cores=0), probability, **kwargs)


def _solution(score: float, program: str | None = None) -> Attempt:
    return Attempt(program=program or f"x = {score}\n", score=score)


def test_valid_solutions_are_kept_and_shown() -> None:
    env = _make()
    plain, info = env.reset(seed=0)
    check_info(info, reset=True)
    assert not env.improving
    env.step("words")
    env.reset()
    env.step(answer("raise ValueError('failed ones are never shown')"))
    assert env.reset()[0] == plain
    assert len(env.archive) == 0
    *_, info_of_step = env.step(answer(BETTER, plan="Seniority it is."))
    assert info_of_step["score"] > 0.6
    prompt, info = env.reset()
    check_info(info, reset=True)
    assert env.improving
    for part in ("test['Seniority']", "one column", f"roc_auc {info_of_step['score']:.5g}"):
        assert part in prompt
    env.close()


def test_probability_and_seeds() -> None:
    draws = []
    for _ in range(2):
        env = _make(0.5)
        env.archive.add(_solution(0.7))
        env.reset(seed=11)
        draws.append([(env.reset(), env.improving)[1] for _ in range(200)])
        env.close()
    assert draws[0] == draws[1]
    # 200 fair coins: outside of 70..130 with probability 1e-5.
    assert 70 < sum(draws[0]) < 130
    never = _make(0.0)
    never.archive.add(_solution(0.7))
    assert not any((never.reset(), never.improving)[1] for _ in range(20))


def test_archive_keeps_the_best_in_the_metrics_direction() -> None:
    for higher, expected in ((True, [0.9, 0.8, 0.7]), (False, [0.1, 0.2, 0.5])):
        archive = Archive(3, higher_is_better=higher)
        for score in (0.5, 0.9, 0.1, 0.7, 0.8, 0.2):
            archive.add(_solution(score))
        assert [attempt.score for attempt in archive.best] == expected
        assert archive.last == _solution(0.2)
        rng = np.random.default_rng(0)
        assert archive.pick(rng, "best") == archive.best[0]
        assert archive.pick(rng, "last") == archive.last
        assert {archive.pick(rng) for _ in range(60)} == set(archive.best)


def test_archive_holds_no_program_twice_and_no_failure() -> None:
    archive = Archive()
    archive.add(_solution(0.5, "same"))
    archive.add(_solution(0.6, "same"))
    assert [attempt.score for attempt in archive.best] == [0.5]
    with pytest.raises(ValueError, match="has no score"):
        archive.add(Attempt(program="x"))
    assert Archive().pick(np.random.default_rng(0)) is None
    with pytest.raises(ValueError, match="capacity=0"):
        Archive(0)
    assert pickle.loads(pickle.dumps(archive)).best == archive.best


def test_environments_share_an_archive() -> None:
    archive = Archive()
    first, second = (_make(archive=archive) for _ in range(2))
    first.reset(seed=0)
    first.step(answer(COPY))
    second.reset(seed=0)
    assert second.improving
    lower = gym.make("mle_gym/ames-housing-v0")
    with pytest.raises(ValueError, match="ranks scores the other way"):
        SelfImprovement(lower, archive=archive)
    first.close()
    second.close()


def test_shared_archive_in_a_pool() -> None:
    archive = Archive()
    with EnvPool([ID] * 2, wrappers=[lambda env: SelfImprovement(env, 1.0, archive=archive)]) as pool:
        starts = pool.reset(seed=0)
        pool.send(0, answer(COPY))
        (result,) = pool.recv()
        assert "Earlier answer:" in result.next_obs
        assert result.next_obs != starts[0].obs
        pool.send(1, "words")
        assert "Earlier answer:" in pool.recv()[0].next_obs


def test_many_threads_add_to_one_archive() -> None:
    archive = Archive(50)

    def add_hundred(first: int) -> None:
        for i in range(100):
            archive.add(_solution(first + i / 1000))

    threads = [threading.Thread(target=add_hundred, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scores = [attempt.score for attempt in archive.best]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([7 + i / 1000 for i in range(99, 49, -1)])


def test_explicit_previous_goes_first() -> None:
    env = _make(0.0)
    prompt, _ = env.reset(seed=0, options={"previous": {"program": "y = 77"}})
    assert env.improving
    assert "y = 77" in prompt


def test_spec_rebuilds_the_wrapper() -> None:
    env = SelfImprovement(gym.make(ID), 0.25, capacity=3, pick="last")
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, SelfImprovement)
    assert again.archive.capacity == 3
    assert data_equivalence(again.spec, env.spec)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"probability=1\.5 has to lie in"):
        _make(1.5)
    with pytest.raises(ValueError, match="pick='bset' is not known; did you mean 'best'"):
        _make(pick="bset")
