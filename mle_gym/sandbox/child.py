"""What runs in the program's own process: prepares the interpreter, then executes the program as ``__main__``.

The warm process calls :func:`run` after a fork; the cold path sends this file's source to a new interpreter. So it
imports the standard library only and nothing of its siblings.
"""

from __future__ import annotations

import atexit
import builtins
import errno
import gc
import importlib.util
import io
import json
import linecache
import os
import random
import socket
import sys
import threading
import time
import types
from typing import Any

__all__ = ["report_number", "run"]

_HOOK_FAILURE = 70


def run(job: dict[str, Any], report_fd: int) -> None:
    """Execute ``job["source"]`` and end this process the way the interpreter would.

    Args:
        job: ``source``, ``hooks``, ``context``, ``seed``, ``env``, ``workdir``, ``threads``, ``argv``.
        report_fd: Datagram socket to the supervisor.
    """
    if job.get("cold"):  # the number stood on the command line
        number = report_number(report_fd)
        os.dup2(report_fd, number, inheritable=False)
        os.close(report_fd)
        report_fd = number
    channel = socket.socket(fileno=report_fd)
    code = _HOOK_FAILURE
    try:
        _prepare(job)
        namespace = _main_module(job)
        if job["hooks"]:
            _install_hooks(job, channel)
    except BaseException as error:
        import traceback

        _send(channel, {"failed": f"{type(error).__name__}: {error}"})
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(_HOOK_FAILURE)
    _send(channel, {"start": time.monotonic(), "cpu": time.process_time()})
    code = _execute(job["source"], namespace, channel)
    os._exit(_finish(code, namespace))


def report_number(taken: int) -> int:
    """Return a descriptor number nobody can guess, other than ``taken``, to which ``dup2`` would fail."""
    number = 200 + int.from_bytes(os.urandom(2), "little") % 700
    return number if number != taken else 900


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    try:
        channel.send(json.dumps(message).encode())
    except OSError as error:
        # The supervisor stops reading after its bound; the program must not notice.
        if error.errno not in (errno.EPIPE, errno.ECONNREFUSED, errno.ENOTCONN, errno.EAGAIN, errno.EBADF):
            raise


def _prepare(job: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["workdir"])
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        raw: Any = open(number, mode + "b", closefd=False)  # noqa: SIM115 - lives as long as the process
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=mode == "w")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = [os.path.join(job["workdir"], "program.py")]
    sys.orig_argv = [sys.executable, *sys.argv]
    if sys.path and sys.path[0] == "":
        del sys.path[0]
    sys.path.insert(0, job["workdir"])
    random.seed(job["seed"])
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(job["seed"] % 2**32)
    else:
        sys.meta_path.insert(0, _SeedNumpy(job["seed"]))  # type: ignore[arg-type]
    if job["threads"] > 1 and "threadpoolctl" in sys.modules:
        # Libraries that the warm process loaded have read their thread variables already.
        sys.modules["threadpoolctl"].threadpool_limits(job["threads"])


class _SeedNumpy:
    """Import hook that seeds numpy's global generator when, and only if, the program imports numpy."""

    def __init__(self, seed: int) -> None:
        self.seed = seed % 2**32

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find numpy as the other hooks do, and seed it once it is loaded."""
        if name != "numpy":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_seed(module: Any) -> None:
                load(module)
                module.random.seed(self.seed)

            spec.loader.exec_module = load_and_seed  # type: ignore[method-assign]
        return spec


def _main_module(job: dict[str, Any]) -> dict[str, Any]:
    path = sys.argv[0]
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(job["source"])
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    for name in [n for n in sys.modules if n.split(".")[0] == "_mle_gym_sandbox"]:
        del sys.modules[name]
    return main.__dict__


def _install_hooks(job: dict[str, Any], channel: socket.socket) -> None:
    def report(name: str, evidence: str = "interpreter") -> None:
        _send(channel, {"milestone": str(name), "evidence": str(evidence)})

    namespace: dict[str, Any] = {"__name__": "_hooks", "__builtins__": builtins}
    exec(compile(job["hooks"], "<hooks>", "exec"), namespace)
    namespace["install"](report, dict(job["context"]))


def _execute(source: str, namespace: dict[str, Any], channel: socket.socket) -> int:
    """Run the program; print its traceback without our frames; return its exit code."""
    path = namespace["__file__"]
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except BaseException as error:  # a MemoryError here means code too deep to parse, not memory
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1
    try:
        exec(code, namespace)
    except SystemExit as error:
        return _exit_code(error.code)
    except BaseException as error:
        limit = _limit_hit(error)
        if limit:
            _send(channel, {"limit": limit})
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _limit_hit(error: BaseException) -> str:
    """Tell whether an uncaught exception means that the program ran into a limit of the sandbox."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "memory"
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):  # torch's CPU allocator
        return "memory"
    return ""


def _finish(code: int, namespace: dict[str, Any]) -> int:
    """Do what the interpreter does on exit, short of freeing every other module."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        # A file that the program left open is written to its end when its last name goes.
        if threading.active_count() == 1:  # daemon threads still use the names
            for name in list(namespace):
                if name != "__builtins__":
                    namespace[name] = None
            gc.collect()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120  # as CPython does
    return code
