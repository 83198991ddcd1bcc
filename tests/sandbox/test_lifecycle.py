"""Processes that are killed, stopped, closed or forked, and what they must not leave behind."""

from __future__ import annotations

import errno
import glob
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mle_gym.sandbox import (
    Execution,
    Limits,
    LocalSandbox,
    Program,
    Status,
    child,
    launcher,
    meters,
    namespaces,
    supervisor,
    users,
    wire,
    zygote,
)

from .conftest import RunProgram

DAEMONS = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
"""


def wait_for(condition: Callable[[], Any], seconds: float = 15.0) -> Any:
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return value


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(pid)
    return found


def helper(sandbox: LocalSandbox) -> int:
    assert sandbox._runner is not None
    sandbox._runner.process.wait_ready()
    pid = sandbox._runner.process.pid
    assert pid is not None
    return pid


def below(pid: int) -> list[int]:
    return meters.descendants(pid)


def children(pid: int) -> list[int]:
    """Direct children, oldest first."""
    return [p for p in sorted(below(pid)) if _parent(p) == pid]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return -1


def in_background(sandbox: LocalSandbox, folder: Path, source: str, **limits: Any) -> Any:
    """Start a run in a thread; returns the future once the program runs."""
    pool = ThreadPoolExecutor(1)
    before = set(below(helper(sandbox)))
    bounds = {"time": 60.0, "memory_mb": 1024, "disk_mb": 64, "cores": 0, **limits}
    future = pool.submit(sandbox.run, Program(source), files={}, limits=Limits(**bounds), artifacts_dir=folder)
    pool.shutdown(wait=False)
    # The supervisor, the first process and the program.
    wait_for(lambda: len(set(below(helper(sandbox))) - before) >= 3)
    time.sleep(0.3)
    return future


def test_nothing_is_left_of_a_run(sandbox: LocalSandbox, run: RunProgram) -> None:
    helper(sandbox)
    first = wait_for(lambda: children(helper(sandbox)))[0]
    idle = set(below(first))
    mounts = Path("/proc/self/mountinfo").read_text()
    temporary = set(glob.glob(f"{tempfile.gettempdir()}/mle_gym-run-*"))
    shm = set(os.listdir("/dev/shm"))
    result = run(DAEMONS + "print('ended')\n")
    assert (result.status, result.stdout) == (Status.OK, "ended\n")
    assert run(DAEMONS + "time.sleep(60)\n", time=0.5).status is Status.TIMEOUT
    assert run("open('x', 'w')", disk_mb=2000).status is Status.OK
    wait_for(lambda: set(alive(below(first))) <= idle)
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert set(glob.glob(f"{tempfile.gettempdir()}/mle_gym-run-*")) == temporary
    assert set(os.listdir("/dev/shm")) - shm == set()


def test_no_descriptor_or_thread_is_left(run_warm: RunProgram) -> None:
    run_warm("print(1)")
    before = (len(os.listdir("/proc/self/fd")), threading.active_count())
    for _ in range(5):
        run_warm("print(1)")
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def test_caller_killed(tmp_path: Path) -> None:
    script = dedent(f"""
        import sys, threading
        from pathlib import Path
        from mle_gym.sandbox import Limits, LocalSandbox, Program
        sandbox = LocalSandbox()
        print("ready", flush=True)
        sandbox.run(Program({DAEMONS + "time.sleep(60)"!r}), files={{}}, artifacts_dir=Path({str(tmp_path)!r}),
                    limits=Limits(time=60, cores=0, disk_mb=2000))
        """)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    caller = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    # Helper, its first process, warm process, supervisor, first process of the run, program, three daemons.
    started = wait_for(lambda: len(pids := below(caller.pid)) >= 9 and pids, 60)
    assert len(glob.glob(f"{tmp_path}/mle_gym-run-*")) == 1
    caller.kill()
    caller.wait()
    caller.stdout.close()
    wait_for(lambda: not alive(started))
    assert glob.glob(f"{tmp_path}/mle_gym-run-*") == []


def test_caller_exits_normally(tmp_path: Path) -> None:
    script = dedent(f"""
        from pathlib import Path
        from mle_gym.sandbox import Limits, LocalSandbox, Program
        sandbox = LocalSandbox(warm=False)
        sandbox.run(Program("print(1)"), files={{}}, limits=Limits(cores=0), artifacts_dir=Path({str(tmp_path)!r}))
        print(sandbox._runner.process.pid)
        """)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    wait_for(lambda: not alive([int(done.stdout)]))


def test_warm_process_killed_while_idle(tmp_path: Path) -> None:
    with LocalSandbox() as sandbox:
        first = children(helper(sandbox))[0]
        zygote = children(first)[0]
        os.kill(zygote, signal.SIGKILL)
        result = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        assert (result.status, result.stdout, result.warm) == (Status.OK, "1\n", True)
        wait_for(lambda: not alive([first, zygote]))


@pytest.mark.parametrize(
    "victim",
    ["warm process", pytest.param("helper", marks=pytest.mark.slow), "supervisor", "first process"],
)
def test_killed_during_a_run(tmp_path: Path, victim: str) -> None:
    with LocalSandbox() as sandbox:
        first = children(helper(sandbox))[0]
        zygote = children(first)[0]
        future = in_background(sandbox, tmp_path, DAEMONS + "time.sleep(60)")
        supervisor = next(pid for pid in children(first) if pid != zygote)
        pids = below(first)
        target = {
            "warm process": zygote,
            "helper": first,
            "supervisor": supervisor,
            "first process": children(supervisor)[0],
        }[victim]
        os.kill(target, signal.SIGKILL)
        result: Execution = future.result(timeout=20)
        assert result.status is Status.INFRASTRUCTURE_ERROR
        assert "killed" in result.message
        keep = {first, zygote} if victim in ("supervisor", "first process") else set()
        wait_for(lambda: set(alive(pids)) <= keep)
        again = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        assert (again.status, again.stdout) == (Status.OK, "1\n")


def test_stopped_supervisor_does_not_hang_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_KILL_LIMIT", 0.5)
    with LocalSandbox(warm=False) as sandbox:
        first = children(helper(sandbox))[0]
        future = in_background(sandbox, tmp_path, DAEMONS + "time.sleep(60)", time=1.5)
        pids = below(first)
        os.kill(children(first)[0], signal.SIGSTOP)
        result: Execution = future.result(timeout=20)
        assert result.status is Status.INFRASTRUCTURE_ERROR
        assert "took too long" in result.message
        wait_for(lambda: not alive(pids))


def test_stopped_helper_does_not_hang_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_HELLO_LIMIT", 0.3)
    with LocalSandbox(warm=False) as sandbox:
        os.kill(children(helper(sandbox))[0], signal.SIGSTOP)
        result = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        assert (result.status, result.stdout) == (Status.OK, "1\n")


def test_one_slow_setup_ends_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalSandbox() as sandbox:
        pid = helper(sandbox)
        future = in_background(sandbox, tmp_path, "import time; time.sleep(3); print('through')")
        wait_for(lambda: len(below(pid)) > 3)
        time.sleep(0.5)
        monkeypatch.setattr(launcher, "_SETUP_LIMIT", 0.001)
        (tmp_path / "late").mkdir()
        late = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path / "late")
        assert late.status is Status.INFRASTRUCTURE_ERROR
        assert "took too long to build the sandbox" in late.message
        result: Execution = future.result(timeout=20)
        assert (result.status, result.stdout) == (Status.OK, "through\n")
        assert helper(sandbox) == pid


def test_stopped_warm_process_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalSandbox() as sandbox:
        first = children(helper(sandbox))[0]
        zygote = children(first)[0]
        monkeypatch.setattr(launcher, "_SETUP_LIMIT", 1.0)
        monkeypatch.setattr(launcher, "_HELLO_LIMIT", 3.0)
        os.kill(zygote, signal.SIGSTOP)
        sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        monkeypatch.undo()
        again = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        assert (again.status, again.stdout, again.warm) == (Status.OK, "1\n", True)
        wait_for(lambda: not alive([first, zygote]))


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EPERM])
def test_a_full_machine_is_not_a_forbidding_one(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork(run: supervisor.Run) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(supervisor.Run, "_fork", fork)
    monkeypatch.setattr(supervisor.plan, "complete", lambda request, isolated: None)
    monkeypatch.setattr(supervisor.plan, "root_spec", lambda request, layout, user: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request: dict[str, Any] = {"hidden": [], "hidden_tails": [], "scratch": ""}
        layout = namespaces.Layout()
        supervisor.Run(theirs, request, supervisor.Surroundings(warm=False, layout=layout)).execute()
        told = wire.receive(ours)
    assert told is not None
    assert set(told) == {"type", "unavailable" if number == errno.EPERM else "lost"}
    assert os.strerror(number) in str(told)


@pytest.mark.skipif(sys.platform != "linux", reason="the warm process forks into namespaces")
def test_warm_process_survives_a_supervisor_that_died() -> None:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        assert not zygote._announce(ours, pid)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_twenty_runs_at_once(warm_sandbox: LocalSandbox, tmp_path: Path) -> None:
    def one(number: int) -> Execution:
        folder = tmp_path / str(number)
        folder.mkdir()
        source = f"open('submission.csv', 'w').write('{number}')\nimport time; time.sleep(0.05)"
        return warm_sandbox.run(Program(source), files={}, limits=Limits(cores=1), artifacts_dir=folder)

    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(one, range(20)))
    assert [r.status for r in results] == [Status.OK] * 20
    assert [r.artifacts["submission.csv"].read_text() for r in results] == [str(n) for n in range(20)]
    assert not any(r.shared for r in results)
    assert max(r.timing.queue for r in results) > 0.05


def test_instances_share_the_warm_process(warm_sandbox: LocalSandbox, tmp_path: Path) -> None:
    pid = helper(warm_sandbox)
    with LocalSandbox() as other:
        assert helper(other) == pid
    assert alive([pid]) == [pid]


def test_the_last_to_close_ends_the_process() -> None:
    from mle_gym.sandbox.runner import Runner

    one, two = (Runner(sys.executable, "limits", warm=False) for _ in range(2))
    one.process.wait_ready()
    pid = one.process.pid
    assert pid is not None
    assert two.process is one.process
    one.close()
    assert alive([pid]) == [pid]
    two.close()
    assert alive([pid]) == []


def test_close_cancels_its_own_runs(warm_sandbox: LocalSandbox, tmp_path: Path) -> None:
    sandbox = LocalSandbox()
    future = in_background(sandbox, tmp_path, "import time; time.sleep(60)")
    sandbox.close()
    assert future.result(timeout=10).status is Status.CANCELLED
    assert alive([helper(warm_sandbox)])


def test_forked_worker_starts_afresh(tmp_path: Path) -> None:
    """What a vector environment's forked worker does with a sandbox it inherited."""
    with LocalSandbox(warm=False) as sandbox:
        mine = helper(sandbox)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                result = sandbox.run(Program("print(1)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
                code = 0 if result.stdout == "1\n" and helper(sandbox) != mine else 2
                sandbox.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert alive([mine]) == [mine]
        result = sandbox.run(Program("print(2)"), files={}, limits=Limits(cores=0), artifacts_dir=tmp_path)
        assert result.stdout == "2\n"


def test_program_that_kills_its_parent(run: RunProgram) -> None:
    result = run(
        """
        import os
        for pid in (os.getppid(), -1, 1):
            try:
                os.kill(pid or 1, 9)
            except OSError as error:
                print(error.errno)
        print("still here")
        """
    )
    assert result.status is Status.OK
    assert result.stdout.endswith("still here\n")


@pytest.mark.parametrize("taken", [3, 200, 523, 899])
def test_report_channel_never_lands_on_its_own_number(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # dup3 fails where both numbers are the same: one cold start in 700 did not start.
    monkeypatch.setattr(
        os, "urandom", lambda count: (taken - 200).to_bytes(count, "little") if taken >= 200 else b"\0\0"
    )
    number = child.report_number(taken)
    assert number != taken
    assert 200 <= number <= 900


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each run a user of its own")
def test_users_of_runs_differ() -> None:
    # The limit of processes counts for a user, so two runs with one user would starve each other.
    assert len({users.choose().uid for _ in range(50)}) == 50
