"""Files that a program hands over, and those it only pretends to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mle_gym.sandbox import LocalSandbox, Status, saferead

from .conftest import RunProgram

TRICKS = {
    "symlink": ("os.symlink('/etc/passwd', name)", "symbolic link"),
    "symlink_to_own": ("open('real', 'w').write('x'); os.symlink('real', name)", "symbolic link"),
    "magic_link": ("os.symlink('/proc/self/exe', name)", "symbolic link"),
    "hard_link": ("open('real', 'w').write('x'); os.link('real', name)", "more than one name"),
    "fifo": ("os.mkfifo(name)", "a FIFO"),
    "folder": ("os.mkdir(name)", "a folder"),
    "socket": ("import socket; socket.socket(socket.AF_UNIX).bind(name)", "a FIFO|a socket"),
    "sparse_10_gb": ("open(name, 'w').truncate(10 << 30)", "larger than 2 MiB"),
    "too_large": ("open(name, 'wb').write(bytes(3 << 20))", "larger than 2 MiB"),
    "below_symlink": ("os.rmdir('out'); os.symlink('/tmp', 'out'); open('/tmp/deep.csv', 'w').write('x')", "symbolic"),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_are_refused(run_warm: RunProgram, trick: str) -> None:
    line, reason = TRICKS[trick]
    name = "out/deep.csv" if trick == "below_symlink" else "submission.csv"
    result = run_warm(f"import os\nname = {name!r}\nos.mkdir('out')\n{line}", collect=(name,), max_artifact_mb=2)
    assert result.status is Status.OK, result.stderr
    assert dict(result.artifacts) == {}
    assert list(result.refused) == [name]
    assert any(part in result.refused[name] for part in reason.split("|")), result.refused


def test_missing_and_nested_and_several(run_warm: RunProgram, tmp_path: Path) -> None:
    result = run_warm(
        "import os; os.mkdir('out'); open('out/a.bin', 'wb').write(bytes(range(256))); open('b', 'w').write('')",
        collect=("out/a.bin", "b", "none"),
    )
    assert set(result.artifacts) == {"out/a.bin", "b"}
    assert dict(result.refused) == {}
    assert result.artifacts["out/a.bin"].read_bytes() == bytes(range(256))
    assert result.artifacts["out/a.bin"].is_relative_to(tmp_path)
    assert result.artifacts["b"].read_bytes() == b""


def test_kernel_milestone_needs_a_real_file(run: RunProgram) -> None:
    def names(source: str) -> list[tuple[str, str]]:
        return [(m.name, m.evidence) for m in run(source).milestones]

    assert names("open('submission.csv', 'w').write('x')") == [("wrote_submission", "kernel")]
    assert names("open('submission.csv', 'w')") == []
    assert names("import os; os.symlink('/etc/passwd', 'submission.csv')") == []


def test_milestones_come_over_their_own_channel(run: RunProgram) -> None:
    hooks = """
def install(report, context):
    import builtins, time
    report("installed", "interpreter")
    builtins.reached = report
    assert context["input_dir"] == "input"
"""
    source = """
        import time
        time.sleep(0.2)
        reached("loaded_data", "interpreter")
        reached("loaded_data", "interpreter")
        reached("claims_kernel", "kernel")
        reached("not a name!", "interpreter")
        print("milestone: trained_model")
        """
    result = run(source, hooks=hooks, context={"input_dir": "input"})
    assert result.status is Status.OK, result.stderr
    assert [(m.name, m.evidence) for m in result.milestones] == [
        ("installed", "interpreter"),
        ("loaded_data", "interpreter"),
        ("claims_kernel", "interpreter"),
    ]
    assert result.milestones[0].time == 0.0
    assert 0.15 < result.milestones[1].time <= result.timing.duration
    listed = run(source, hooks=hooks, context={"input_dir": "input", "milestones": ["loaded_data"]})
    assert [m.name for m in listed.milestones] == ["loaded_data"]


def test_milestones_are_bounded_and_survive_garbage(run_warm: RunProgram) -> None:
    result = run_warm(
        """
        import os, socket
        fd = next(int(n) for n in os.listdir("/proc/self/fd") if int(n) > 100)
        channel = socket.socket(fileno=fd)
        for junk in (b"x", b"[" * 4000, b"{}", b"[]", b'{"milestone": 3}', b'{"milestone": "x", "start": 1}'):
            channel.send(junk)
        try:
            for i in range(100_000):
                channel.send(b'{"milestone": "name%d"}' % i)
        except OSError:
            print("closed")
        """
    )
    assert (result.status, result.stdout) == (Status.OK, "closed\n")
    assert len(result.milestones) == 64


def test_failing_hooks_are_our_fault(run: RunProgram) -> None:
    result = run("print('never')", hooks="def install(report, context):\n    raise RuntimeError('broken hook')\n")
    assert (result.status, result.stdout) == (Status.INFRASTRUCTURE_ERROR, "")
    assert "broken hook" in result.message


def test_environment_and_seed(run: RunProgram) -> None:
    source = """
        import os, random, numpy
        print(os.environ["MLE_SEED"], os.environ["MLE_SAMPLE_SUBMISSION"], os.environ["EXTRA"])
        print(random.random(), numpy.random.rand(), hash("stable"))
        """
    env = {"MLE_SAMPLE_SUBMISSION": "./input/sample.csv", "EXTRA": "1"}
    first, again, other = (run(source, seed=seed, env=env) for seed in (7, 7, 8))
    import random

    import numpy as np

    expected = f"{random.Random(7).random()} {np.random.RandomState(7).rand()}"
    assert first.stdout.splitlines()[0] == "7 /sandbox/input/sample.csv 1"
    assert first.stdout.splitlines()[1].startswith(expected)
    assert first.stdout == again.stdout
    assert other.stdout.splitlines()[1] != first.stdout.splitlines()[1]


def test_walking_fallback_refuses_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels without openat2: every component is opened with O_NOFOLLOW."""
    monkeypatch.setattr(saferead, "_open_beneath", saferead._walk_beneath)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("fine")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    (tmp_path / "file").symlink_to(tmp_path / "sub" / "a")
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = saferead.open_regular(directory, "sub/a", 100)
        assert os.read(fd, 10) == b"fine"
        os.close(fd)
        for name in ("link/a", "file", "../x", "sub"):
            with pytest.raises(saferead.UnsafeFile):
                saferead.open_regular(directory, name, 100)
        with pytest.raises(FileNotFoundError):
            saferead.open_regular(directory, "sub/none", 100)
    finally:
        os.close(directory)


def test_unreadable_submission_is_read_or_refused(run_warm: RunProgram) -> None:
    result = run_warm("import os; open('submission.csv', 'w').write('x'); os.chmod('submission.csv', 0)")
    assert set(result.artifacts) | set(result.refused) == {"submission.csv"}


def test_files_go_where_asked(warm_sandbox: LocalSandbox, run_warm: RunProgram, tmp_path: Path) -> None:
    target = tmp_path / "artifacts" / "submission.csv"
    target.parent.mkdir(exist_ok=True)
    target.symlink_to(tmp_path / "elsewhere")
    result = run_warm("open('submission.csv', 'w').write('x')")
    assert result.artifacts["submission.csv"] == target
    assert not target.is_symlink()
    assert not (tmp_path / "elsewhere").exists()
