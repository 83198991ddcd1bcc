"""The harness's process: for each job on stdin it forks; the child installs the hooks and runs the program."""

import atexit
import importlib
import json
import os
import signal
import sys
import threading
import time
import types


def run(job: dict, channel: int) -> int:
    """Run the job's program as ``__main__`` with the hooks in place; return the exit code."""
    os.chdir(job["work"])
    for number, name in ((1, "stdout.txt"), (2, "stderr.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)

    def report(name: str, evidence: str) -> None:
        os.write(channel, (json.dumps([name, evidence]) + "\n").encode())

    with open("program.py", "w") as file:
        file.write(job["source"])
    path = os.path.abspath("program.py")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = path
    if job["hooks"]:
        namespace: dict = {"__name__": "_hooks"}
        start = time.perf_counter()
        exec(compile(job["hooks"], "<hooks>", "exec"), namespace)
        namespace["install"](report, job["context"])
        os.environ["HOOK_SECONDS"] = str(time.perf_counter() - start)
        del namespace
    try:
        exec(compile(job["source"], path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        return int(error.code or 0)
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != os.path.dirname(os.path.realpath(__file__))]
    for line in sys.stdin:
        job = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.close(read)
            code = run(job, write)
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        os.close(write)
        deadline = threading.Timer(job["timeout"], lambda pid=pid: os.killpg(pid, signal.SIGKILL))
        deadline.start()
        with os.fdopen(read) as pipe:
            reports = [[*json.loads(line), time.monotonic()] for line in pipe]
        status = os.waitpid(pid, 0)[1]
        deadline.cancel()
        print(json.dumps({"code": os.waitstatus_to_exitcode(status), "reports": reports}), flush=True)


if __name__ == "__main__":
    main()
