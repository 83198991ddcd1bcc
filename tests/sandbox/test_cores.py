"""Exclusive cores: leases, across threads and processes, and what a program gets of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mle_gym.sandbox import CoreLease, Status, cores
from mle_gym.sandbox.cores import available_cores

from .conftest import RunProgram


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leases of this test only: other processes of the machine do not matter."""
    monkeypatch.setattr(cores, "_folder", lambda: tmp_path)
    return tmp_path


def test_leases_are_exclusive(own_folder: Path) -> None:
    total = len(available_cores())
    with CoreLease.acquire(total) as everything:
        assert everything.cores == tuple(available_cores())
        with pytest.raises(TimeoutError):
            CoreLease.acquire(1, timeout=0.05)
    assert everything.cores == ()
    with CoreLease.acquire(1, timeout=1.0) as one:
        assert len(one.cores) == 1
        one.release()
        one.release()


def test_other_users_can_lock_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_ROOT", str(tmp_path))
    before = os.umask(0o077)
    try:
        CoreLease.acquire(1).release()
    finally:
        os.umask(before)
    assert (tmp_path / "mle_gym-cores").stat().st_mode & 0o7777 == 0o1777
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "mle_gym-cores").iterdir()} == {0o644}


def test_arguments(own_folder: Path) -> None:
    with CoreLease.acquire(0) as nothing:
        assert nothing.cores == ()
    with pytest.raises(ValueError, match="may run on"):
        CoreLease.acquire(len(available_cores()) + 1)
    with pytest.raises(ValueError, match="out of range"):
        CoreLease.acquire(-1)


def test_cancel_ends_the_wait(own_folder: Path) -> None:
    flag = threading.Event()
    with CoreLease.acquire(len(available_cores())):
        threading.Timer(0.1, flag.set).start()
        with pytest.raises(TimeoutError):
            CoreLease.acquire(1, cancel=flag)


def test_first_come_first_served(own_folder: Path) -> None:
    order: list[int] = []
    held = CoreLease.acquire(len(available_cores()))

    def wait(number: int) -> None:
        with CoreLease.acquire(len(available_cores())):
            order.append(number)

    threads = []
    for number in range(4):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        time.sleep(0.05)
    held.release()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
def test_a_wish_that_cannot_be_met_blocks_nobody(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    monkeypatch.setattr(cores, "available_cores", lambda: [0, 1])
    monkeypatch.setattr(cores, "_PATIENCE", 0.1)
    monkeypatch.setattr(cores, "_MOST_PATIENCE", 0.2)
    learner = CoreLease.reserve(1)
    assert learner.cores == (0,)
    got: list[tuple[int, ...]] = []

    def wish_for_two() -> None:
        with CoreLease.acquire(2, timeout=60.0) as both:
            got.append(both.cores)

    wish = threading.Thread(target=wish_for_two)
    wish.start()
    time.sleep(0.05)
    if elsewhere:
        script = (
            "from pathlib import Path\nfrom mle_gym.sandbox import CoreLease, cores\n"
            f"cores._folder = lambda: Path({str(own_folder)!r})\ncores.available_cores = lambda: [0, 1]\n"
            "print(CoreLease.acquire(1, timeout=30.0).cores)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == "(1,)\n"
    else:
        for _ in range(3):
            with CoreLease.acquire(1, timeout=10.0) as one:
                assert one.cores == (1,)
    assert got == []
    learner.release()
    wish.join(timeout=10.0)
    assert got == [(0, 1)]


def test_reserve_leaves_a_core(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "available_cores", lambda: [0, 1, 2])
    with CoreLease.reserve(8) as most:
        assert most.cores == (0, 1)
        with CoreLease.reserve(1) as last:
            assert last.cores == (2,)
        with CoreLease.acquire(1, timeout=1.0) as left:
            assert left.cores == (2,)
    monkeypatch.setattr(cores, "available_cores", lambda: [0])
    with CoreLease.reserve(1) as single:
        assert single.cores == ()


def test_leases_hold_across_processes_and_die_with_them(own_folder: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom mle_gym.sandbox import CoreLease, cores\n"
        f"cores._folder = lambda: Path({str(own_folder)!r})\n"
        "lease = CoreLease.acquire(len(cores.available_cores()))\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(TimeoutError):
        CoreLease.acquire(1, timeout=0.1)
    other.kill()
    other.wait()
    other.stdout.close()
    CoreLease.acquire(1, timeout=5.0).release()


def test_fork_does_not_keep_the_lease(own_folder: Path) -> None:
    lease = CoreLease.acquire(len(available_cores()))
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0 if lease.cores == () else 1)
    os.close(read)
    lease.release()
    CoreLease.acquire(1, timeout=2.0).release()
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_program_gets_its_cores_and_threads(own_folder: Path, run: RunProgram) -> None:
    source = """
        import os
        print(len(os.sched_getaffinity(0)), os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"])
        """
    one = run(source, cores=1)
    assert (one.stdout, one.shared) == ("1 1 1\n", False)
    shared = run(source, cores=0)
    assert (shared.stdout, shared.shared) == (f"{len(available_cores())} 1 1\n", True)


@pytest.mark.skipif(len(available_cores()) < 2, reason="needs two cores")
def test_two_cores_give_two_threads_to_loaded_libraries(own_folder: Path, run: RunProgram) -> None:
    result = run(
        """
        import os, numpy, sklearn.linear_model
        from threadpoolctl import threadpool_info
        print(len(os.sched_getaffinity(0)), sorted({(i["user_api"], i["num_threads"]) for i in threadpool_info()}))
        """,
        cores=2,
    )
    assert result.status is Status.OK, result.stderr
    assert result.stdout == "2 [('blas', 2), ('openmp', 2)]\n"


def test_queue_time_is_not_duration(own_folder: Path, run_warm: RunProgram) -> None:
    lease = CoreLease.acquire(len(available_cores()))
    threading.Timer(0.4, lease.release).start()
    result = run_warm("pass", cores=1, time=5.0)
    assert result.timing.queue >= 0.3
    assert result.timing.duration < 0.4
