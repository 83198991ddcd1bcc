"""Files that survive kills, checkpoints that restore, replays that answer, audits that count."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mle_gym
from mle_gym.pool import StepResult
from tests.trainers.bandit import Bandit
from trainers.common.audit import Audit
from trainers.common.checkpoint import Checkpoints, restore_random
from trainers.common.config import ConfigError, GenerationConfig, TrainConfig
from trainers.common.jsonlines import JsonLines, plain, write_json
from trainers.common.policy import Policy
from trainers.common.replay import Diverged, Replay, group_by_recv
from trainers.common.rollout import Rollout
from trainers.common.run_folder import RunFolder
from trainers.common.sample import Sample
from trainers.common.transformers_generator import TransformersGenerator


@given(cut=st.integers(0, 400))
def test_a_torn_line_is_cut_and_the_whole_ones_stay(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    records = [{"n": number, "text": "zwölf\n" * number} for number in range(8)]
    file = JsonLines(path)
    file.append(records)
    file.close()
    content = path.read_bytes()[:cut]
    path.write_bytes(content)
    again = JsonLines(path)
    kept = content.count(b"\n")
    assert again.read() == records[:kept]
    again.append([{"n": "next"}])
    assert again.read() == [*records[:kept], {"n": "next"}]
    again.close()


def test_values_become_plain_json() -> None:
    value = {
        "nan": float("nan"),
        "inf": np.float32(np.inf),
        "array": np.array([True, False]),
        "number": np.int64(3),
        "path": Path("a/b"),
        "nested": ({"x": 1.5}, None),
        4: "key",
    }
    assert plain(value) == {
        "nan": None,
        "inf": None,
        "array": [True, False],
        "number": 3,
        "path": "a/b",
        "nested": [{"x": 1.5}, None],
        "4": "key",
    }


def test_documents_are_replaced_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    write_json(tmp_path / "x.json", {"b": math.nan})
    assert json.loads((tmp_path / "x.json").read_text()) == {"b": None}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_checkpoint_restores_tensors_state_and_chance(tiny_folder: Path, tmp_path: Path) -> None:
    policy = Policy.load(tiny_folder)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.1)
    scored = policy.token_logprobs([[1, 2]], [[5, 6, 0]])
    (-scored.logprobs.sum()).backward()
    optimizer.step()
    state = {"optimizer": optimizer.state_dict(), "numbers": {3: 0.1 + 0.2}, "list": [1, (2, "x"), None, True]}
    checkpoints = Checkpoints(tmp_path / "c", keep=2)
    folder = checkpoints.save(7, policy, state)
    drawn = [random.random(), float(np.random.rand()), float(torch.rand(()))]

    loaded = Checkpoints.load(folder)
    restore_random(loaded["random"])
    assert [random.random(), float(np.random.rand()), float(torch.rand(()))] == drawn
    assert loaded["numbers"] == {3: 0.1 + 0.2}
    assert loaded["list"] == [1, [2, "x"], None, True]
    other = Policy.load(folder / "policy")
    for (name, one), (_, two) in zip(policy.model.named_parameters(), other.model.named_parameters(), strict=True):
        assert torch.equal(one, two), name
    twin = torch.optim.AdamW(other.parameters(), lr=0.5)
    twin.load_state_dict(loaded["optimizer"])
    assert twin.param_groups[0]["lr"] == 0.1
    for one, two in zip(optimizer.state_dict()["state"].values(), twin.state_dict()["state"].values(), strict=True):
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_half_a_checkpoint_is_none_and_old_ones_go(tiny_folder: Path, tmp_path: Path) -> None:
    policy = Policy.load(tiny_folder)
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.latest() is None
    (tmp_path / ".000009.part" / "policy").mkdir(parents=True)
    assert checkpoints.latest() is None
    for number in (3, 10, 2, 10):
        checkpoints.save(number, policy, {"number": number})
    assert checkpoints.latest() == tmp_path / "000010"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.isdigit()) == ["000003", "000010"]


def record(ticket: int, env: int, response: str, recv: int, received: int, **more: Any) -> dict[str, Any]:
    return {
        "ticket": ticket,
        "env": env,
        "response": response,
        "recv": recv,
        "received": received,
        "reward": float(ticket),
        "terminated": True,
        "truncated": False,
        "info": {},
        "next_obs": "again",
        **more,
    }


def test_a_kill_while_a_checkpoint_is_replaced_leaves_a_whole_one(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy.load(tiny_folder, device="cpu")
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(3, policy, {"value": 1})

    def killed(path: Path, **options: object) -> None:
        if Path(path).exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(3, policy, {"value": 2})
    newest = checkpoints.latest()
    assert newest is not None
    assert Checkpoints.load(newest)["value"] == 2


def test_a_second_run_leaves_the_first_ones_configuration(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "run", TrainConfig(seed=1))
    with pytest.raises(ConfigError, match="Another process"):
        RunFolder.create(tmp_path / "run", TrainConfig(seed=2))
    first.close()
    again, config = RunFolder.open(tmp_path / "run")
    again.close()
    assert config.seed == 1


def test_a_replay_answers_then_hands_over() -> None:
    groups = [[record(0, 1, "b", 0, 1)], [record(2, 1, "c", 1, 2), record(1, 0, "a", 1, 2)]]
    with mle_gym.EnvPool([lambda: Bandit()] * 3) as pool:
        replay = Replay(groups, pool)
        replay.reset(seed=0)
        replay.send(0, "a")
        second = replay.send(1, "b")
        third = replay.send(2, "c")
        with pytest.raises(RuntimeError, match="busy"):
            replay.send(1, "x")
        assert [(r.ticket, r.reward) for r in replay.recv()] == [(second, 0.0)]
        replay.send(1, "c")
        assert [r.reward for r in replay.recv()] == [2.0, 1.0]
        assert replay.groups_left == 0
        # The record is used up: what it did not answer runs for real, and so does what is new.
        fresh = replay.send(0, "a")
        results: list[StepResult] = []
        while len(results) < 2:
            results += replay.recv(1, 5.0)
        assert {result.ticket: result.reward for result in results} == {third: 1.0, fresh: 0.2}


def test_a_replay_notices_another_action() -> None:
    with mle_gym.EnvPool([lambda: Bandit()] * 2) as pool:
        replay = Replay([[record(0, 0, "a", 0, 1)]], pool)
        replay.reset()
        replay.send(0, "b")
        with pytest.raises(Diverged, match="ticket 0 differs"):
            replay.recv()
        replay = Replay([[record(0, 1, "a", 0, 1)]], pool)
        replay.send(0, "a")
        with pytest.raises(Diverged, match="Environment 1 has no action"):
            replay.recv()


def test_what_was_cancelled_before_the_hand_over_is_cancelled_after_it() -> None:
    with mle_gym.EnvPool([lambda: Bandit(hang=30.0)] * 2, patience=0.1) as pool:
        replay = Replay([[record(0, 0, "a", 0, 1)]], pool)
        replay.reset()
        replay.send(0, "a")
        doomed = replay.send(1, "b")
        replay.cancel(doomed)
        assert len(replay.recv()) == 1
        results = replay.recv(1, 10.0)
        assert [(r.ticket, r.info["outcome"], r.info["reward_valid"]) for r in results] == [
            (doomed, "cancelled", False)
        ]


def test_a_torn_group_is_not_replayed(tmp_path: Path) -> None:
    from trainers.common.config import TrainConfig

    records = [record(0, 0, "a", 0, 1), record(1, 0, "a", 1, 2), record(2, 1, "a", 1, 2), record(3, 0, "a", 2, 2)]
    assert [[row["ticket"] for row in group] for group in group_by_recv(records)] == [[0], [1, 2]]
    assert [[row["ticket"] for row in group] for group in group_by_recv(records, after=1)] == [[1, 2]]
    folder = RunFolder.create(tmp_path / "run", TrainConfig())
    folder.samples.append(records)
    assert len(folder.recorded_groups(1)) == 1
    assert [row["ticket"] for row in folder.samples.read()] == [0, 1, 2]
    folder.close()


def test_a_rollout_goes_on_where_it_was(tiny_folder: Path, tmp_path: Path) -> None:
    policy = Policy.load(tiny_folder)

    def rollout(name: str, pool: mle_gym.EnvPool) -> Rollout:
        (tmp_path / name).mkdir()
        made = Rollout(
            pool,
            ["task"] * 6,
            TransformersGenerator(policy),
            GenerationConfig(max_new_tokens=3),
            5,
            JsonLines(tmp_path / name / "samples.jsonl"),
            JsonLines(tmp_path / name / "prompts.jsonl"),
            lambda: 0.0,
        )
        made.reset()
        return made

    def receive_all(source: Rollout) -> list[Sample]:
        samples: list[Sample] = []
        while source.in_flight:
            samples += source.receive(5.0)
        return sorted(samples, key=lambda sample: sample.ticket)

    with mle_gym.EnvPool([lambda: Bandit()] * 6) as pool, mle_gym.EnvPool([lambda: Bandit()] * 6) as other:
        one, two = rollout("one", pool), rollout("two", other)
        assert one.launch(4) == [0, 1, 2, 3]
        state = json.loads(json.dumps(one.state()))
        two.restore(state)
        assert (two.in_flight, two.free) == (4, 2)
        first, second = receive_all(one), receive_all(two)
        assert [s.generation for s in first] == [s.generation for s in second]
        assert [s.reward for s in first] == [s.reward for s in second]
        one.launch(2)
        two.launch(2)
        assert [s.generation.text for s in receive_all(one)] == [s.generation.text for s in receive_all(two)]
        assert all(math.isclose(sum(s.generation.logprobs), _score(policy, s), abs_tol=1e-4) for s in first)
        one.launch(6)
        with pytest.raises(RuntimeError, match="All 6 environments are busy"):
            one.launch(1)


def _score(policy: Policy, sample: Sample) -> float:
    with torch.no_grad():
        scored = policy.token_logprobs([sample.generation.prompt_ids], [sample.generation.response_ids])
    return float(scored.logprobs.sum())


def test_the_audit_shows_what_an_admission_rule_starves() -> None:
    audit = Audit()
    audit.launch(range(100), version=0)
    for ticket in range(100):
        audit.finish(ticket, float(ticket), "waiting")
    audit.settle(range(50), "trained")
    audit.settle(range(50, 100), "dropped")
    deciles = audit.deciles()
    assert deciles["edges"] == pytest.approx(np.quantile(np.arange(100.0), np.linspace(0, 1, 11)).tolist())
    assert deciles["launched"] == pytest.approx([0.1] * 10)
    assert deciles["trained"] == pytest.approx([0.2] * 5 + [0.0] * 5)
    assert deciles["dropped"] == pytest.approx([0.0] * 5 + [0.2] * 5)
    assert deciles["finished"] == deciles["launched"]


def test_the_audit_shows_what_the_loss_does_to_slow_samples() -> None:
    """100 samples of 4 tokens; the slower half is 3 updates old, has half of its tokens clipped and ratios 1 and 3."""
    audit = Audit()
    audit.launch(range(50, 100), version=1)
    audit.launch(range(50), version=4)
    for ticket in range(100):
        audit.finish(ticket, float(ticket), "trained")
    audit.learn(range(100), 4, [[0.5, 4, 0, 4, 4] if t < 50 else [1.5, 4, 2, 8, 20] for t in range(100)])
    twin = Audit()
    twin.restore(json.loads(json.dumps(audit.state())))
    for either in (audit, twin):
        deciles = either.deciles()
        assert deciles["lag"] == [0.0] * 5 + [3.0] * 5
        assert deciles["weighted"] == pytest.approx([0.05] * 5 + [0.15] * 5)
        assert deciles["clip_share"] == [0.0] * 5 + [0.5] * 5
        assert deciles["ess_share"] == pytest.approx([1.0] * 5 + [8**2 / (4 * 20)] * 5)


def test_the_audit_tells_version_and_duration_apart() -> None:
    """Version 0: 10 fast trained, 10 slow cut off; version 1: 20 trained of every duration."""
    audit = Audit()
    audit.launch(range(20), version=0)
    audit.launch(range(20, 40), version=1)
    for ticket in range(40):
        cut = 10 <= ticket < 20
        audit.finish(ticket, float(ticket % 20), "dropped" if cut else "trained", cut=cut)
    first, second = audit.table()
    assert (first["first"], first["last"], second["first"], second["last"]) == (0, 0, 1, 1)
    assert first["launched"] == second["launched"] == second["trained"] == [2] * 10
    assert first["finished"] == first["trained"] == [2] * 5 + [0] * 5
    assert first["dropped"] == [0] * 5 + [2] * 5
    audit.launch(range(40, 240), version=2)
    for ticket in range(40, 240):
        audit.launch([ticket], version=ticket)
        audit.finish(ticket, 1.0, "trained")
    table = audit.table()
    assert len(table) == 40  # neighbouring versions are joined
    assert sum(sum(row["launched"]) for row in table) == 240


def test_the_audit_counts_fates_by_version_and_survives_a_restart() -> None:
    audit = Audit()
    assert audit.deciles()["launched"] == []
    audit.launch([0, 1, 2], version=0)
    audit.launch([3], version=1)
    audit.finish(0, 1.0, "waiting")
    audit.finish(1, 0.0, "masked")
    audit.settle([0], "trained")
    audit.settle([2], "dropped")
    twin = Audit()
    twin.restore(json.loads(json.dumps(audit.state())))
    for either in (audit, twin):
        assert either.versions() == {
            0: {"running": 0, "waiting": 0, "trained": 1, "masked": 1, "dropped": 1},
            1: {"running": 1, "waiting": 0, "trained": 0, "masked": 0, "dropped": 0},
        }
        assert either.deciles()["edges"] == [1.0] * 11  # the masked sample is no evidence
