"""Tokenizer, tiny model, warm start, evaluation, and the language model that ships."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mle_gym.commands.base import UserError
from mle_gym.response import Response
from trainers.common.load_model import _TINY
from trainers.common.policy import Policy
from trainers.sft import main
from trainers.sft.demonstrations import Demonstration, load, save
from trainers.sft.evaluation import evaluate
from trainers.sft.sft import SftConfig, prompts_of, tokenizer_texts, warm_start
from trainers.sft.tiny_model import TinyConfig, make_tiny

SMALL = TinyConfig(vocabulary=400, layers=2, width=32, heads=2, kv_heads=1, feed_forward=64, context=1024)
CONFIG = SftConfig(updates=16, batch_size=4, group=4, learning_rate=1e-2, token_budgets=(70,), shape=SMALL)


@pytest.fixture(scope="module")
def few() -> list[Demonstration]:
    return [d for d in load() if d.task == "mle_gym/concrete-strength-v0"][:8]


@pytest.fixture(scope="module")
def prompts(few: list[Demonstration]) -> dict[tuple[str, int], str]:
    return prompts_of(few, CONFIG.token_budgets)


def small(few: list[Demonstration], prompts: dict[tuple[str, int], str]) -> Policy:
    return make_tiny(tokenizer_texts(few, prompts), SMALL, seed=1)


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_any_text_survives_the_shipped_tokenizer(text: str) -> None:
    policy = _shipped()
    # Text that spells a special token is that token: no policy writes one and goes on.
    assume(not any(token in text for token in policy.tokenizer.all_special_tokens))
    assert policy.decode(policy.encode_response(text)) == text


def test_special_tokens_are_the_templates(few: list[Demonstration], prompts: dict[tuple[str, int], str]) -> None:
    policy = small(few, prompts)
    ids = policy.encode_prompt("a\nb")
    assert policy.tokenizer.decode(ids) == "<|user|>a\nb<|assistant|>"
    assert policy.stop_ids == {policy.tokenizer.convert_tokens_to_ids("<|end|>")}
    assert policy.encode_response("x")[-1] in policy.stop_ids
    assert policy.context_length == 1024
    lines = [policy.decode([i]) for i in range(3, len(policy.tokenizer))]
    assert max(map(len, lines)) <= SMALL.token_length
    assert all("\n" not in line.lstrip("\n") for line in lines)


def test_first_loss_is_the_cross_entropy_of_the_responses(
    few: list[Demonstration], prompts: dict[tuple[str, int], str]
) -> None:
    policy = small(few, prompts)
    config = replace(CONFIG, updates=1, batch_size=8, group=8, rename=0.0)
    prompt = policy.encode_prompt(prompts[few[0].task, 70])
    total, count = 0.0, 0
    for d in few:
        response = policy.encode_response(d.response)
        ids = torch.tensor([prompt + response])
        labels = ids.clone()
        labels[:, : len(prompt)] = -100
        with torch.no_grad():
            total += float(policy.model(input_ids=ids, labels=labels).loss) * len(response)
        count += len(response)
    assert warm_start(policy, few, prompts, config)[0] == pytest.approx(total / count, abs=1e-4)


def test_warm_start_learns_and_repeats(few: list[Demonstration], prompts: dict[tuple[str, int], str]) -> None:
    runs = []
    for _ in range(2):
        policy = small(few, prompts)
        runs.append((warm_start(policy, few, prompts, CONFIG), [p.detach().clone() for p in policy.parameters()]))
    (losses, weights), (again, weights_again) = runs
    assert losses == again
    assert all(torch.equal(a, b) for a, b in zip(weights, weights_again, strict=True))
    assert len(losses) == 16
    assert losses[0] == pytest.approx(torch.log(torch.tensor(400.0)).item(), abs=0.3)  # uniform over the vocabulary
    assert losses[-1] < 0.8 * losses[0]


def test_command_makes_saves_and_records(
    few: list[Demonstration], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(few, tmp_path / "few.jsonl.gz")
    arguments = ["--demonstrations", str(tmp_path / "few.jsonl.gz"), "--updates", "2", "--batch-size", "4"]
    arguments += ["--token-budgets", "70", "--shape.layers", "1", "--shape.width", "32", "--shape.heads", "2"]
    arguments += ["--shape.kv-heads", "1", "--out", str(tmp_path / "lm")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "8 demonstrations" in shown
    assert "update 2: loss" in shown
    record = json.loads((tmp_path / "lm" / "sft.json").read_text())
    assert record["config"]["updates"] == 2
    assert str(tmp_path) not in json.dumps(record)
    policy = Policy.load(tmp_path / "lm", device="cpu")
    assert policy.model.config.num_hidden_layers == 1
    # A saved model can be started from: the same command on any causal LM.
    assert main([*arguments[:6], "--policy", str(tmp_path / "lm"), "--out", str(tmp_path / "more")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--demonstrations", "none.gz"], "There are no demonstrations at none.gz"),
        (["--policy", "./none"], "There is no folder none"),
        (["--bogus"], "bogus"),
    ],
)
def test_command_errors_are_one_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        main([*arguments, "--out", str(tmp_path)])


def _shipped(cache: list[Policy] = []) -> Policy:  # noqa: B006  (loaded once)
    if not cache:
        cache.append(Policy.load("tiny", device="cpu"))
    return cache[0]


def test_shipped_model_is_small_and_complete() -> None:
    assert sum(file.stat().st_size for file in _TINY.iterdir()) < 8e6
    policy = _shipped()
    assert 1e6 < sum(p.numel() for p in policy.parameters()) < 3e6
    assert policy.context_length >= 1024
    assert policy.tokenizer.chat_template
    record = json.loads((_TINY / "sft.json").read_text())
    assert record["config"]["policy"] == "new"


@pytest.mark.slow
def test_shipped_model_starts_where_reinforcement_learning_can() -> None:
    """On the task it never saw: some programs are valid, of several families, from weak to strong."""
    result = evaluate(_shipped(), "mle_gym/credit-default-v0", 64, seed=5, env_kwargs={"token_budget": 130, "cores": 0})
    assert 0.08 < result.valid_share < 0.5
    assert len(result.families) >= 4
    assert result.scores[0] < 0.7 < result.scores[-1]
    assert len(result.outcomes) >= 3
    assert result.programs == 64


def test_evaluation_counts_real_executions() -> None:
    result = evaluate(
        _shipped(), "mle_gym/breast-cancer-v0", 4, temperature=0.7, seed=1, env_kwargs={"token_budget": 130, "cores": 0}
    )
    assert result.programs == 4
    assert sum(result.families.values()) == len(result.scores) == result.outcomes.get("scored", 0)
    assert f"{result.valid_share:.1%} of 4 valid" in str(result)


def test_shipped_model_writes_answers() -> None:
    from trainers.common.transformers_generator import TransformersGenerator

    policy = _shipped()
    prompt = prompts_of([Demonstration("mle_gym/breast-cancer-v0", "", "", "", 0, 0)], (130,))
    generation = TransformersGenerator(policy).generate(
        list(prompt.values()), temperature=0.0, max_new_tokens=320, seed=0
    )[0]
    assert generation.finished
    response = Response.parse(generation.text)
    assert response.plan
    assert 'pd.read_csv("input/train.csv")' in response.program
