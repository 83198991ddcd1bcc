"""Machines and users that differ: no namespaces, an ordinary user, another interpreter; and sandboxes by name."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import mle_gym
from mle_gym.sandbox import LocalSandbox, Sandbox, SandboxUnavailable, Status, make_sandbox, selftest

from .conftest import runner

NOBODY = 65534
PACKAGE = str(Path(mle_gym.__file__).parent / "sandbox")
# The sandbox package on its own: another interpreter need not have what the rest of the project imports.
ALONE = f"""
import importlib, sys, types
alone = types.ModuleType("alone")
alone.__path__ = [{PACKAGE!r}]
sys.modules["alone"] = alone
base, local = importlib.import_module("alone.base"), importlib.import_module("alone.local")
"""
CHECKS = """
import json, os, tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
secret = folder / "secret"
secret.write_text("secret")
(folder / "in").mkdir(mode=0o700)
(folder / "in" / "a").write_text("shown")
(folder / "in" / "b").write_text("hidden")
said = []
for warm in (True, False):
    with local.LocalSandbox(warm=warm) as sandbox:
        def run(source, **limits):
            return sandbox.run(base.Program(source), files={"input": folder / "in"}, artifacts_dir=folder,
                               hidden=(folder / "in" / "b",), limits=base.Limits(time=5, cores=0, **limits))
        fine = run("import os\\nprint(open('input/a').read(), os.getuid())\\nopen('submission.csv', 'w').write('x')")
        said.append([fine.status, fine.stdout, fine.warm, list(fine.artifacts), fine.message])
        said.append(run(f"open({str(secret)!r})").message.split(":")[-2:])
        said.append(run("open('input/b')").message.split(":")[1])
        said.append(run("import os, signal\\nos.kill(1, 9)\\nprint('alive')").stdout)
        said.append(run("while True: print('x' * 1000)").status)
        said.append(run("x = bytearray(3 << 30)", memory_mb=128).status)
        said.append(run("import os\\nos.mkdir('d'); open('d/x', 'wb').write(bytes(1 << 20)); os.chmod('d', 0)",
                        disk_mb=2000).status)
        said.append(sorted(set(sandbox.enforcement().values())))
print(json.dumps([os.getuid(), said]))
"""


def _expected(uid: int) -> list[object]:
    def each(warm: bool) -> list[object]:
        return [
            ["ok", "shown 1000\n", warm, ["submission.csv"], ""],
            [" [Errno 2] No such file or directory", _ANY],
            " PermissionError",
            "alive\n",
            "output_limit",
            "out_of_memory",
            "ok",
            ["kernel", "polled"],
        ]

    return [uid, [*each(True), *each(False)]]


class _Any:
    def __eq__(self, other: object) -> bool:
        return True


_ANY = _Any()


def _reachable(path: str) -> bool:
    """Whether other users can get to an executable."""
    real = Path(os.path.realpath(path))
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)


def _as_nobody(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in this interpreter as an ordinary user, wherever the interpreter lies."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = [*drop, sys.executable, "-c", script]
    if not _reachable(sys.executable):
        # In a mount namespace of our own, the closed home folder is replaced by one that only holds the interpreter.
        prefix = os.path.realpath(sys.base_prefix)
        top = "/" + prefix.split("/")[1]
        steps = (
            f"mkdir -p /run/interpreter && mount -t tmpfs -o mode=755 none /run && mkdir /run/interpreter"
            f" && mount --bind {prefix} /run/interpreter && mount -t tmpfs -o mode=755 none {top}"
            f' && mkdir -p {prefix} && mount --bind /run/interpreter {prefix} && umask 022 && exec "$@"'
        )
        command = ["unshare", "-m", "sh", "-c", steps, "sh", *command]
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=120)


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root to become an ordinary user"
)


@needs_root
def test_ordinary_user() -> None:
    done = _as_nobody(ALONE + CHECKS)
    assert done.stderr == ""
    import json

    assert json.loads(done.stdout) == _expected(NOBODY)


@pytest.mark.slow
def test_this_user_alone() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", ALONE + CHECKS], capture_output=True, text=True)
    assert done.stderr == ""
    import json

    assert json.loads(done.stdout) == _expected(os.getuid())


def test_another_interpreter(tmp_path: Path) -> None:
    system = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if system is None or os.path.realpath(system) == os.path.realpath(sys.executable):
        pytest.skip("there is no second interpreter")
    with LocalSandbox(python=system) as sandbox:
        result = runner(sandbox, tmp_path)("import sys; print(sys.executable, sys.prefix == sys.base_prefix)")
    assert (result.status, result.stdout, result.warm) == (Status.OK, f"{system} True\n", True), result


def test_packages_of_the_user_folder(tmp_path: Path) -> None:
    """An interpreter outside a virtual environment also finds what pip --user installed."""
    system = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if system is None:
        pytest.skip("there is no system interpreter")
    base = tmp_path / "user"
    query = "import site; print(site.ENABLE_USER_SITE and site.getusersitepackages())"
    environment = {"PYTHONUSERBASE": str(base), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    found = subprocess.run([system, "-c", query], capture_output=True, text=True, env=environment).stdout.strip()
    if found == "False":
        pytest.skip("the system interpreter has no user folder")
    Path(found).mkdir(parents=True)
    Path(found, "own_module.py").write_text("x = 5\n")
    script = ALONE + (
        "from pathlib import Path\n"
        "for warm in (True, False):\n"
        "    with local.LocalSandbox(warm=warm) as sandbox:\n"
        "        result = sandbox.run(base.Program('import own_module; print(own_module.x)'), files={},\n"
        f"            artifacts_dir=Path({str(tmp_path)!r}), limits=base.Limits(cores=0))\n"
        "        print(result.stdout.strip(), result.stderr)\n"
    )
    done = subprocess.run([system, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["5", "5"], "")


def test_unknown_interpreter() -> None:
    with pytest.raises(SandboxUnavailable, match="no interpreter /none/python"):
        LocalSandbox(python="/none/python")
    with pytest.raises(SandboxUnavailable, match="does not start"):
        LocalSandbox(python="/bin/false")


WITHOUT_NAMESPACES = """
from mle_gym.sandbox import seccomp, syscalls
syscalls.set_no_new_privs()
syscalls.install_filter(seccomp.build_filter())
import tempfile
from pathlib import Path
from mle_gym.sandbox import Limits, LocalSandbox, Program, SandboxUnavailable
try:
    LocalSandbox()
except SandboxUnavailable as error:
    print(error)
try:
    LocalSandbox(allow_unsafe=True, require=("network",))
except SandboxUnavailable as error:
    print(error)
folder = Path(tempfile.mkdtemp())
(folder / "in").write_text("shown")
sandbox = LocalSandbox(allow_unsafe=True)
print(sandbox.tier, sandbox.enforcement()["network"], sandbox.enforcement()["time"])
def run(source, **limits):
    return sandbox.run(Program(source), files={"in": folder / "in"}, artifacts_dir=folder,
                       limits=Limits(**{"time": 20.0, "cores": 0, **limits}))
fine = run("print(open('in').read())\\nopen('submission.csv', 'w').write('x')")
written = fine.artifacts["submission.csv"].read_text()
print(fine.status, fine.stdout.strip(), fine.warm, written, fine.enforcement["signals"])
daemons = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("pid", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
time.sleep(60)
'''
cut = sandbox.run(Program(daemons), files={}, artifacts_dir=folder, collect=("pid",), limits=Limits(time=1.0, cores=0))
print(cut.status, Path("/proc", cut.artifacts["pid"].read_text()).exists())
print(run("import os\\nos.kill(os.getppid(), 9)\\nwhile True: pass").status)
print(run("print(bytearray(3 << 30)[0])", memory_mb=128).status)
sandbox.close()
import glob
print(glob.glob(tempfile.gettempdir() + "/mle_gym-*"))
"""


def test_without_namespaces(tmp_path: Path) -> None:
    """A kernel that refuses namespaces, here through a seccomp filter on the caller."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=120,
    )
    assert done.stderr == ""
    refused, required, tier, fine, cut, killed, memory, left = done.stdout.splitlines()
    assert refused.startswith("the kernel gives this user no namespaces")
    assert "allow_unsafe=True" in refused
    assert "does not enforce network" in required
    assert tier == "limits none polled"
    assert fine == "ok shown True x none"
    assert cut == "timeout False"
    assert killed == "infrastructure_error"
    assert memory == "out_of_memory"
    assert left == "[]"


def test_report_tells_what_got_through() -> None:
    """The judge of the self-test: what a probe managed is never called enforced."""
    shut = dict.fromkeys(
        ["read_answers", "list_answers", "write_host", "write_input", "connect", "udp", "signal", "allocate"], False
    )
    shut.update(forks=False, fill=False)
    cut = {"time": True, "output": True, "disk": False}
    assert set(selftest._report(shut, cut, "namespaces", True).values()) == {"kernel", "polled"}
    assert selftest._report({**shut, "list_answers": True}, cut, "namespaces", True)["answers_hidden"] == "none"
    assert selftest._report(shut, cut, "namespaces", False)["network"] == "none"
    assert selftest._report(shut, {**cut, "time": False}, "namespaces", True)["time"] == "none"
    open_disk = {**shut, "fill": True}
    assert selftest._report(open_disk, {**cut, "disk": True}, "limits", True)["disk"] == "polled"
    assert selftest._report(open_disk, cut, "limits", True)["disk"] == "none"


def test_requirements_are_checked() -> None:
    with LocalSandbox(warm=False, require=("network", "answers_hidden", "time")) as sandbox:
        assert set(sandbox.enforcement()) == set(selftest.PROPERTIES)
        assert sandbox.tier == "namespaces"
    with pytest.raises(ValueError, match="did you mean 'network'"):
        LocalSandbox(require=("netwrk",))


def test_sandboxes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_sandbox(require=("time",)) as sandbox:
        assert isinstance(sandbox, LocalSandbox)
    with pytest.raises(ValueError, match="did you mean 'local'"):
        make_sandbox("locl")
    point = EntryPoint("mine", "tests.sandbox.test_tiers:third_party", "mle_gym.sandboxes")
    monkeypatch.setattr("mle_gym.sandbox.registry.entry_points", lambda group: [point])
    assert make_sandbox("mine", allow_unsafe=True) == ("mine", None, True, ())
    with pytest.raises(ValueError, match="known: local, mine"):
        make_sandbox("zzz")


def third_party(**options: object) -> Sandbox:
    return ("mine", *options.values())  # type: ignore[return-value]


def test_import_is_light() -> None:
    script = textwrap.dedent("""
        import sys
        import mle_gym.sandbox
        mle_gym.sandbox.LocalSandbox
        print([name for name in ("torch", "pandas", "sklearn", "numpy") if name in sys.modules and name != "numpy"])
        """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
