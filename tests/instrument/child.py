"""The child process of the harness: hooks first, then the program as ``__main__``."""

import importlib
import json
import os
import sys
import time
import types


def main() -> None:
    channel = int(sys.argv[1])
    job = json.loads(sys.stdin.read())
    if job["warm"]:
        for name in ("numpy", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics"):
            importlib.import_module(name)
        for name in ("sklearn.model_selection", "sklearn.pipeline"):
            importlib.import_module(name)

        child = os.fork()
        if child:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    del sys.argv[1:]

    def report(name: str, evidence: str) -> None:
        os.write(channel, (json.dumps([name, evidence, time.monotonic()]) + "\n").encode())

    if job["hooks"]:
        namespace: dict = {"__name__": "_hooks"}
        exec(compile(job["hooks"], "<hooks>", "exec"), namespace)
        namespace["install"](report, job["context"])
        del namespace
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    with open("program.py", "w") as file:
        file.write(job["source"])
    try:
        exec(compile(job["source"], "program.py", "exec"), main_module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


main()
