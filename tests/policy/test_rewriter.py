"""A language model of transformers as the instrumenter's model: one that cannot do it, and one that learned to."""

from __future__ import annotations

import logging
from pathlib import Path

import gymnasium as gym
import pytest
import torch

import mle_gym
from mle_gym.instrument import make_instrumenter
from mle_gym.instrument.llm import LLMInstrumenter, _prompt
from tests.envs.programs import answer
from trainers.common.policy import Policy
from trainers.common.rewriter import TransformersRewriter

TASK = "mle_gym/credit-default-v0"
PROGRAM = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\nprint(len(train))"
REWRITTEN = PROGRAM.replace("\nprint", '\nprint("loaded data")\nprint')


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policy that ships, taught one rewrite by heart."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy = Policy.load("tiny", device="cpu")
    prompt, response = policy.encode_prompt(_prompt(PROGRAM)), policy.encode_response(f"```python\n{REWRITTEN}\n```")
    optimiser = torch.optim.AdamW(policy.parameters(), lr=2e-3, weight_decay=0.0)
    for _ in range(80):
        loss = -policy.token_logprobs([prompt], [response]).logprobs.sum() / len(response)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.005:
            break
    folder = tmp_path_factory.mktemp("taught")
    policy.save(folder)
    return folder


def test_the_base_model_rewrites_and_the_hooks_see_it(taught: Path, tmp_path: Path) -> None:
    options = {"model": str(taught), "device": "cpu", "cache_dir": str(tmp_path)}
    env = gym.make(TASK, cores=0, instrumenter="llm", instrumenter_options=options)
    env.reset(seed=0)
    *_, info = env.step(answer(PROGRAM))
    assert info["instrumenter"] == "llm:forgeable"
    assert info["milestones"].tolist() == [False, True] + [False] * 5
    assert "loaded data" not in info["terminal_output"]
    # The same model on a program that it did not learn: its answer is another program, so the original runs.
    env.reset()
    other = PROGRAM.replace("train", "table").replace("print", "assert 0,")
    *_, info = env.step(answer(other))
    assert (info["instrumenter"], info["outcome"]) == ("llm:forgeable:original", "runtime_error")
    assert not info["milestones"].any()
    env.close()


def test_a_model_that_cannot_rewrite_changes_no_program(tmp_path: Path) -> None:
    data = mle_gym.get_task("credit-default").load()
    llm = make_instrumenter("llm", model="tiny", device="cpu", max_new_tokens=40, cache_dir=str(tmp_path))
    assert isinstance(llm, LLMInstrumenter)
    for number in range(3):
        source = f"{PROGRAM}\nx = {number}\n"
        program = llm.instrument(source, data)
        assert (program.source, program.hooks) == (source, "")
    assert (llm.accepted, llm.rejected) == (0, 3)
    assert len(list(tmp_path.rglob("*.json"))) == 3


def test_a_program_beyond_the_context_is_declined(tmp_path: Path) -> None:
    rewriter = TransformersRewriter(model="tiny", device="cpu")
    assert rewriter(_prompt("x = 1\n" * 3000)) == ""
    llm = LLMInstrumenter(rewriter, cache_dir=str(tmp_path))
    llm.instrument("x = 1\n" * 3000, mle_gym.get_task("credit-default").load())
    assert llm.rejected == 1
    assert list(tmp_path.rglob("*.json")) == []


def test_the_answer_is_the_same_each_time_and_the_weights_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    rewriter = TransformersRewriter(model="tiny", device="cpu", max_new_tokens=20)
    before = [parameter.clone() for parameter in rewriter._policy.parameters_list]
    assert rewriter(_prompt(PROGRAM)) == rewriter(_prompt(PROGRAM)) != ""
    assert not list(rewriter._policy.parameters())  # frozen
    assert all(torch.equal(a, b) for a, b in zip(before, rewriter._policy.parameters_list, strict=True))
    assert caplog.text == ""
    with pytest.raises(ValueError, match="max_new_tokens=0"):
        TransformersRewriter(model="tiny", max_new_tokens=0)


def test_folders_with_other_weights_have_another_identity(taught: Path) -> None:
    assert TransformersRewriter(model=str(taught)).identity != TransformersRewriter(model="tiny").identity
