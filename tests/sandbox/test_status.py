"""How executions end, and what is measured of them."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from mle_gym.sandbox import LocalSandbox, Status

from .conftest import RunProgram


def test_ok(run: RunProgram, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x\n41\n")
    result = run(
        """
        import csv
        x = int(list(csv.DictReader(open("input/a.csv")))[0]["x"])
        open("submission.csv", "w").write(f"{x + 1}")
        print("said", x)
        """,
        files={"input": tmp_path / "in"},
    )
    assert (result.status, result.exit_code, result.stdout, result.message) == (Status.OK, 0, "said 41\n", "")
    assert result.artifacts["submission.csv"].read_text() == "42"
    assert result.enforcement["answers_hidden"] == "kernel"
    assert result.shared


def test_program_error_shows_the_program_only(run: RunProgram) -> None:
    result = run("def f():\n    raise KeyError('gone')\nf()\n")
    assert (result.status, result.exit_code) == (Status.PROGRAM_ERROR, 1)
    assert result.message == "the program ended with exit code 1: KeyError: 'gone'"
    assert 'program.py", line 3, in <module>\n    f()\n' in result.stderr
    assert 'program.py", line 2, in f\n    raise KeyError' in result.stderr
    assert result.stderr.count("File ") == 2


def test_syntax_error_and_exit_codes(run: RunProgram) -> None:
    broken = run("x = (\n")
    assert broken.status is Status.PROGRAM_ERROR
    assert "SyntaxError" in broken.message
    assert "_execute" not in broken.stderr
    assert run("import sys; sys.exit(3)").exit_code == 3
    said = run("raise SystemExit('enough')")
    assert (said.exit_code, said.stderr) == (1, "enough\n")
    assert run("import os; os.kill(os.getpid(), 15)").exit_code == -15


@pytest.mark.parametrize(
    "source", ["x = '\0'", "x = '\ud800'", "1" + "+1" * 100_000, "(" * 500 + ")" * 500, "-" * 50_000 + "1"]
)
def test_strange_sources_are_the_programs_fault(run_warm: RunProgram, source: str) -> None:
    result = run_warm(source)
    assert result.status in (Status.PROGRAM_ERROR, Status.OK), result
    assert result.exit_code is not None


def test_large_source(run_warm: RunProgram) -> None:
    assert run_warm("x = 1\n" * 200_000 + "print(x)").stdout == "1\n"


def test_ends_like_an_interpreter(run: RunProgram) -> None:
    result = run(
        """
        import atexit, sys, threading, time
        atexit.register(lambda: print("atexit"))
        threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
        sys.stdout.write("main\\n")
        """
    )
    assert (result.status, result.stdout) == (Status.OK, "main\nthread\natexit\n")


def test_timeout_keeps_what_was_reached(run: RunProgram) -> None:
    result = run(
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("submission.csv", "w").write("early")
        print("before")
        while True:
            pass
        """,
        time=0.5,
    )
    assert (result.status, result.exit_code, result.stdout) == (Status.TIMEOUT, None, "before\n")
    assert 0.5 <= result.timing.duration < 2.0
    assert 0.01 < result.cpu_time < result.timing.duration + 0.05
    assert [(m.name, m.evidence) for m in result.milestones] == [("wrote_submission", "kernel")]
    assert result.artifacts["submission.csv"].read_text() == "early"


def test_out_of_memory_in_one_allocation(run: RunProgram) -> None:
    result = run("block = bytearray(3 << 30)", memory_mb=256)
    assert (result.status, result.exit_code) == (Status.OUT_OF_MEMORY, 1)
    assert "256 MiB" in result.message
    assert "MemoryError" in result.stderr


def test_out_of_memory_over_several_processes(run: RunProgram) -> None:
    result = run(
        """
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                block = bytearray(os.urandom(1 << 20)) * 120
                time.sleep(30)
        time.sleep(30)
        """,
        memory_mb=300,
    )
    assert (result.status, result.exit_code) == (Status.OUT_OF_MEMORY, None)
    assert result.timing.duration < 15
    assert 300 < result.peak_memory < 700


def test_idle_forks_are_not_out_of_memory(run_warm: RunProgram) -> None:
    # Twenty forks of a 160 MiB process share nearly all of it.
    result = run_warm(
        """
        import os, time
        pids = []
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                time.sleep(0.5)
                os._exit(0)
            pids.append(pid)
        print(sum(os.waitpid(pid, 0)[1] for pid in pids))
        """,
        memory_mb=700,
    )
    assert (result.status, result.stdout) == (Status.OK, "0\n")


def test_disk_limit(run: RunProgram) -> None:
    result = run(
        """
        with open("big", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
        """,
        disk_mb=8,
    )
    assert result.status is Status.DISK_LIMIT
    assert "8 MiB" in result.message


def test_disk_limit_of_a_folder(run_warm: RunProgram) -> None:
    # Too large for memory: a host folder that is polled.
    mode = os.stat(tempfile.gettempdir()).st_mode
    quiet = run_warm("open('a', 'wb').write(bytes(1 << 20)); open('/tmp/b', 'w').write('b'); print('ok')", disk_mb=1100)
    assert (quiet.status, quiet.stdout, quiet.enforcement["disk"]) == (Status.OK, "ok\n", "polled")
    result = run_warm(
        """
        import os, time
        for i in range(3):
            fd = os.open(f"/tmp/{i}", os.O_WRONLY | os.O_CREAT)
            os.posix_fallocate(fd, 0, 500 << 20)
        os.chmod("/tmp", 0)
        time.sleep(20)
        """,
        disk_mb=1100,
    )
    assert result.status is Status.DISK_LIMIT
    assert os.stat(tempfile.gettempdir()).st_mode == mode


def test_output_limit_is_quick_and_flat(run: RunProgram) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    result = run(
        """
        line = "x" * (1 << 20)
        for _ in range(1024):
            print(line)
        """,
        output_kb=512,
    )
    assert (result.status, result.exit_code) == (Status.OUTPUT_LIMIT, None)
    assert time.monotonic() - began < 10
    assert len(result.stdout) < 200_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


def test_long_output_keeps_head_and_tail(run_warm: RunProgram) -> None:
    result = run_warm("print('first'); print('x' * 400_000); print('last')")
    assert result.status is Status.OK
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("last\n")
    gap = int(result.stdout.partition("... [")[2].partition(" bytes left out]")[0])
    assert gap + result.stdout.count("x") == 400_000


def test_undecodable_output(run_warm: RunProgram) -> None:
    result = run_warm("import sys; sys.stdout.buffer.write(b'a\\xff\\n')")
    assert result.stdout == "a�\n"


def test_cancel(run: RunProgram) -> None:
    flag = threading.Event()
    threading.Timer(0.5, flag.set).start()
    result = run("import time; print('on', flush=True); time.sleep(30)", cancel=flag)
    assert result.status is Status.CANCELLED
    assert result.timing.duration < 10


def test_cancel_while_queued(warm_sandbox: LocalSandbox, run_warm: RunProgram) -> None:
    from mle_gym.sandbox import CoreLease
    from mle_gym.sandbox.cores import available_cores

    flag = threading.Event()
    with CoreLease.acquire(len(available_cores())):
        threading.Timer(0.3, flag.set).start()
        result = run_warm("print(1)", cores=1, cancel=flag)
    assert result.status is Status.CANCELLED
    assert (result.timing.queue >= 0.3, result.timing.duration) == (True, 0.0)


def test_cpu_time_counts_the_whole_tree(run: RunProgram) -> None:
    result = run(
        """
        import os, time
        def burn(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass
        pid = os.fork()
        if pid == 0:
            os.setsid()
            if os.fork() == 0:
                burn(0.3)
                open("done", "w").close()
            os._exit(0)
        os.waitpid(pid, 0)
        burn(0.2)
        while not os.path.exists("done"):
            time.sleep(0.01)
        """
    )
    assert result.status is Status.OK, result
    assert result.cpu_time == pytest.approx(0.5, abs=0.2)
    assert result.timing.duration >= 0.3


def test_timing_adds_up(run_warm: RunProgram) -> None:
    began = time.monotonic()
    result = run_warm("import time; time.sleep(0.3)")
    wall = time.monotonic() - began
    timing = result.timing
    assert 0.3 <= timing.duration < 3.0
    # The parts leave out only what the caller does before it queues and after it has the result.
    assert timing.queue + timing.setup + timing.duration + timing.teardown == pytest.approx(wall, abs=0.1)
    assert result.warm


def test_bad_arguments(warm_sandbox: LocalSandbox, run_warm: RunProgram, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside the working folder"):
        run_warm("", collect=("../x",))
    with pytest.raises(ValueError, match="does not exist"):
        run_warm("", files={"input": tmp_path / "none"})
    for wrong in ({"time": 0}, {"time": float("inf")}, {"memory_mb": -1}):
        with pytest.raises(ValueError, match="must be positive"):
            run_warm("", **wrong)
    with pytest.raises(ValueError, match="NVIDIA GPUs"):
        run_warm("", gpus=99)
    with pytest.raises(ValueError, match="environment variable"):
        run_warm("", env={"A=B": "c"})
    with pytest.raises(ValueError, match="out of range"):
        run_warm("", cores=10_000)
    with pytest.raises(ValueError, match="cover another file"):
        run_warm("", files={"a": tmp_path, "a/b": tmp_path})


def test_closed_sandbox_raises(tmp_path: Path) -> None:
    from mle_gym.sandbox import Limits, Program

    sandbox = LocalSandbox(warm=False)
    sandbox.close()
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.run(Program(""), files={}, limits=Limits(), artifacts_dir=tmp_path)


@pytest.mark.parametrize("end", ["", "raise ValueError('late')", "raise SystemExit(3)"])
def test_a_file_left_open_is_written_to_its_end(run: RunProgram, end: str) -> None:
    result = run(
        f"""
        import sys
        f = open("submission.csv", "w")
        files = [open("other.csv", "w")]
        files[0].write("other")
        f.write("id,y\\n" + "1,2\\n" * 3)
        {end}
        """,
        collect=("submission.csv", "other.csv"),
    )
    assert result.artifacts["submission.csv"].read_text() == "id,y\n" + "1,2\n" * 3
    assert result.artifacts["other.csv"].read_text() == "other"
    assert result.exit_code == (1 if "Value" in end else 3 if end else 0)
