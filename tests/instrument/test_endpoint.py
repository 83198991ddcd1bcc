"""The instrumenter behind a real HTTP server: good answers, hostile ones, and servers that misbehave."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import mle_gym  # noqa: F401  (registers the ids)
from mle_gym.instrument import InstrumenterFailed, make_instrumenter
from mle_gym.instrument.endpoint import LARGEST_REPLY, ChatEndpoint
from mle_gym.instrument.llm import LLMInstrumenter
from tests.envs.programs import COPY, answer
from tests.instrument.chat_server import ChatServer, Reply, completion, program_in, serve

PROGRAM = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\nprint(len(train))"


def good(prompt: str) -> str:
    """What the prompt asks for."""
    lines = program_in(prompt).splitlines()
    lines[1:1] = ['print("imported packages")']
    return "Sure!\n```python\n" + "\n".join([*lines, 'print("loaded data")']) + "\n```\n"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serve(good) as made:
        yield made


def instrumenter(server: ChatServer, **options: Any) -> LLMInstrumenter:
    made = make_instrumenter("llm", base_url=server.base_url, model="m", **{"cache_dir": "", "retries": 1, **options})
    assert isinstance(made, LLMInstrumenter)
    return made


def test_a_good_rewrite_is_taken(server: ChatServer, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    llm = instrumenter(server, api_key_env="MY_KEY")
    program = llm.instrument(PROGRAM, data)
    name = program.context["function"]
    first, *rest = PROGRAM.splitlines()
    assert program.source.splitlines() == [first, f"{name}(0)", *rest, f"{name}(1)"]
    assert (llm.accepted, llm.rejected, llm.label(program)) == (1, 0, "llm:forgeable")
    (request,) = server.requests
    assert (request["path"], request["model"], request["temperature"]) == ("/v1/chat/completions", "m", 0.0)
    assert PROGRAM in request["messages"][0]["content"]
    assert server.keys == ["Bearer secret"]


MARK = 'print("trained model")'
HOSTILE = {
    "more code": "import os\nos.system('true')\n" + PROGRAM + f"\n{MARK}",
    "code on the same line": PROGRAM + f"\n{MARK}; x = 1",
    "work inside the print": PROGRAM + "\nprint(open('submission.csv', 'w').write('x') or 'trained model')",
    "a file for the print": PROGRAM + "\nprint('trained model', file=open('submission.csv', 'w'))",
    "a changed path": PROGRAM.replace("train.csv", "test.csv") + f"\n{MARK}",
    "an assigned print": f"print = len\n{PROGRAM}\n{MARK}",
    "a guard around it all": "if True:\n " + PROGRAM.replace("\n", "\n ") + f"\n {MARK}",
    "a dropped line": PROGRAM.rpartition("\n")[0] + f"\n{MARK}",
    "an argument": PROGRAM.replace("print(len(train))", f"print(len(train), {MARK})"),
    "a default": PROGRAM + f"\ndef f(x={MARK}): pass",
    "a method of it": PROGRAM + "\nprint.__call__('trained model')",
    "a format": PROGRAM + "\nprint(f'trained model')",
    "a joined text": PROGRAM + "\nprint('trained ' + 'model')",
    "the hook's name": PROGRAM + "\n_milestone_0123456789abcdef(3)",
    "null bytes": PROGRAM + f"\n{MARK}\0",
    "depth": PROGRAM + f"\n{MARK}\n" + "(" * 2000 + ")" * 2000,
    "only words": "I would rather not.",
    "nothing": "",
    "megabytes": PROGRAM + f"\n{MARK}\n#" + "x" * 2**20,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_rewrite_is_not(server: ChatServer, data: Any, text: str) -> None:
    llm = instrumenter(server)
    for shown in (text, f"```python\n{text}\n```"):
        source = f"{PROGRAM}\n# {len(shown)}"
        server.reply = lambda prompt, shown=shown: shown
        program = llm.instrument(source, data)
        assert (program.source, program.hooks) == (source, "")
        assert llm.label(program) == "llm:forgeable:original"
    assert (llm.accepted, llm.rejected) == (0, 2)


def test_of_several_blocks_the_one_that_holds_is_taken(server: ChatServer, data: Any) -> None:
    server.reply = lambda prompt: f"```python\n{PROGRAM}\n{MARK}\n```\nI added\n```python\n{MARK}\n```\n"
    assert instrumenter(server).instrument(PROGRAM, data).source.startswith(PROGRAM)


def test_a_program_with_fences_in_it(server: ChatServer, data: Any) -> None:
    source = 'text = """\n```python\nx = 1\n```\n"""\n'
    server.reply = lambda prompt: f"````python\n{source}{MARK}\n````"
    llm = instrumenter(server)
    assert llm.instrument(source, data).hooks
    assert "````python\n" + source in server.requests[0]["messages"][0]["content"]


def sequence(*replies: str | Reply) -> Any:
    rest = list(replies)
    return lambda prompt: rest.pop(0) if len(rest) > 1 else rest[0]


def test_failures_that_pass_are_tried_again(server: ChatServer) -> None:
    busy: Reply = (429, {"Retry-After": "0"}, b'{"error": {"message": "slow down"}}')
    broken: Reply = (200, {}, b'{"choices": []}')
    torn: Reply = (200, {"Content-Length": "4000"}, completion("cut")[:20])
    server.reply = sequence(busy, (503, {}, b"<html>"), broken, torn, "at last")
    assert ChatEndpoint(base_url=server.base_url + "/", model="m", retries=4)("?") == "at last"
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("reply", "attempts", "reason"),
    [
        ((500, {}, b'{"error": "out of\\nmemory"}'), 2, "status 500: out of memory"),
        ((404, {}, b'{"error": {"message": "no model m."}}'), 1, "status 404: no model m"),
        ((401, {}, b""), 1, "status 401"),
        ((200, {}, b"not json"), 2, "the reply is no chat completion"),
        ((200, {}, completion(["a list"])), 2, "the reply is no chat completion"),
        ((200, {}, b"[" * 100_000), 2, "the reply is no chat completion"),
        ((200, {}, b" " * (LARGEST_REPLY + 1)), 2, "the reply is longer than"),
        ((302, {"Location": "http://192.0.2.1/"}, b""), 2, "status 302"),
    ],
)
def test_failures_that_last_are_one_sentence(server: ChatServer, reply: Reply, attempts: int, reason: str) -> None:
    server.reply = lambda prompt: reply
    with pytest.raises(InstrumenterFailed) as caught:
        ChatEndpoint(base_url=server.base_url, model="m", retries=1)("?")
    text = str(caught.value)
    assert f"{server.base_url} gave no answer after {attempts} attempts ({reason}" in text
    assert text.endswith("check the server and the model name 'm'.")
    assert "\n" not in text
    assert len(server.requests) == attempts


def test_a_prompt_that_the_server_declines_is_no_failure(server: ChatServer, data: Any) -> None:
    server.reply = lambda prompt: (400, {}, b'{"error": {"message": "context length exceeded"}}')
    llm = instrumenter(server)
    assert llm.instrument(PROGRAM, data).source == PROGRAM
    assert llm.rejected == len(server.requests) == 1
    server.reply = lambda prompt: (200, {}, completion(None))
    assert llm.instrument(PROGRAM + "\n", data).hooks == ""


def test_time_is_limited_whatever_the_server_does(server: ChatServer) -> None:
    stop = threading.Event()
    server.reply = lambda prompt: f"late {stop.wait(30)}"
    start = time.monotonic()
    with pytest.raises(InstrumenterFailed, match="after 1 attempts \\(timed out\\)"):
        ChatEndpoint(base_url=server.base_url, model="m", retries=0, timeout=0.3)("?")
    stop.set()
    server.drip = 0.1  # each byte comes well within the time limit, all of them do not
    server.reply = lambda prompt: "a dripping answer" * 9
    with pytest.raises(InstrumenterFailed, match="timed out"):
        ChatEndpoint(base_url=server.base_url, model="m", retries=0, timeout=0.5)("?")
    assert time.monotonic() - start < 10


def dead_url() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}/v1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "instrumenter='llm' needs a model"),
        ({"base_url": "127.0.0.1:8000", "model": "m"}, "must look like http://127.0.0.1:8000/v1"),
        ({"base_url": "ftp://h/v1", "model": "m"}, "must look like"),
        ({"base_url": "http://h:port/v1", "model": "m"}, "is no URL"),
        ({"base_url": "http://a:b@h/v1", "model": "m"}, "must not hold a password"),
        ({"base_url": "http://h/v1", "model": "m", "timeout": 0}, "timeout=0"),
        ({"base_url": "http://h/v1"}, "does not take these options: .*'model'"),
        ({"base_url": "http://h/v1", "model": "m", "modle": 1}, "does not take these options: .*'modle'"),
        ({"model": "m", "backend": "opneai"}, "did you mean 'openai'"),
        ({"model": "m", "backend": "no.such:Thing"}, "'no.such:Thing' cannot be imported"),
        ({"model": "./no/folder"}, "The instrumenter's model is missing. There is no folder no/folder"),
        ({"model": "tiny", "generate": print}, "not both"),
    ],
)
def test_mistakes_are_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        make_instrumenter("llm", **options)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_met_at_the_start() -> None:
    url = dead_url()
    env = gym.make(
        "mle_gym/credit-default-v0", instrumenter="llm", instrumenter_options={"base_url": url, "model": "m"}
    )
    with pytest.raises(ValueError, match=rf"server {url} cannot be reached \(Connection refused\); start it or"):
        env.reset(seed=0)
    env.close()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def test_answers_are_kept_on_disk(server: ChatServer, data: Any, kept: Path) -> None:
    for _ in range(2):
        program = instrumenter(server, cache_dir=str(kept)).instrument(PROGRAM, data)
        assert program.hooks
    assert len(server.requests) == 1
    instrumenter(server, cache_dir=str(kept), temperature=0.5).instrument(PROGRAM, data)
    assert len(server.requests) == 2  # asked otherwise, answered otherwise
    (file, _) = files(kept)
    assert json.loads(file.read_text()) == {"answer": good(server.requests[0]["messages"][0]["content"])}


def test_what_is_on_disk_is_not_believed(
    server: ChatServer, data: Any, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    instrumenter(server, cache_dir=str(kept)).instrument(PROGRAM, data)
    (file,) = files(kept)
    file.write_text(json.dumps({"answer": HOSTILE["more code"]}))
    assert instrumenter(server, cache_dir=str(kept)).instrument(PROGRAM, data).source == PROGRAM
    assert len(server.requests) == 1
    file.write_text("{")
    assert instrumenter(server, cache_dir=str(kept)).instrument(PROGRAM, data).hooks
    assert len(server.requests) == 2
    assert "cannot be read and is made anew" in caplog.text
    file.write_text("[]")
    assert instrumenter(server, cache_dir=str(kept)).instrument(PROGRAM, data).hooks


def test_a_disk_that_cannot_be_written_stops_nothing(
    server: ChatServer, data: Any, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept.write_text("a file where a folder should be")
    llm = instrumenter(server, cache_dir=str(kept))
    assert llm.instrument(PROGRAM, data).hooks
    assert llm.instrument(PROGRAM + "\n", data).hooks
    assert caplog.text.count("Rewrites are not kept") == 1


def test_in_the_environment(server: ChatServer, tmp_path: Path) -> None:
    options = {"base_url": server.base_url, "model": "m", "cache_dir": str(tmp_path / "c"), "retries": 0}
    env = gym.make("mle_gym/credit-default-v0", cores=0, instrumenter="llm", instrumenter_options=options)
    _, info = env.reset(seed=0)
    assert info["instrumenter"] == "llm:forgeable"
    _, reward, _, _, info = env.step(answer(PROGRAM))
    assert (info["outcome"], info["instrumenter"]) == ("no_submission", "llm:forgeable")
    assert (info["milestones"].tolist(), reward) == ([True, True] + [False] * 5, pytest.approx(-9.8))
    assert "loaded data" not in info["terminal_output"]
    server.reply = lambda prompt: HOSTILE["more code"]
    env.reset()
    _, reward, _, _, info = env.step(answer(COPY))
    # The original ran: it is scored as ever, and only the kernel saw a milestone.
    assert (info["outcome"], info["instrumenter"], reward) == ("scored", "llm:forgeable:original", 0.5)
    assert info["milestones"].tolist() == [False] * 6 + [True]
    server.reply = lambda prompt: (500, {}, b"")
    env.reset()
    _, reward, terminated, truncated, info = env.step(answer("x = 1"))
    assert (info["outcome"], info["reward_valid"], reward) == ("infrastructure_error", False, 0.0)
    assert (terminated, truncated) == (False, True)
    assert "gave no answer after 1 attempts (status 500)" in info["message"]
    env.close()
