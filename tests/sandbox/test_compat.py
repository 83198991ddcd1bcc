"""What ordinary machine-learning programs do must work inside."""

from __future__ import annotations

import importlib.util

import pytest

from mle_gym.sandbox import Status

from .conftest import RunProgram

PROGRAMS = {
    "pool_fork": """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(sum(pool.map(abs, range(-5, 0))))
        """,
    "pool_spawn": """
        import multiprocessing
        def square(x):
            return x * x
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(sum(pool.map(square, range(4))))
        """,
    "process_pool_executor": """
        from concurrent.futures import ProcessPoolExecutor
        def double(x):
            return 2 * x
        if __name__ == "__main__":
            with ProcessPoolExecutor(2) as pool:
                print(list(pool.map(double, [1, 2])))
        """,
    "manager": """
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.Manager() as manager:
                shared = manager.dict(a=1)
                print(shared["a"])
        """,
    "shared_memory": """
        from multiprocessing import shared_memory
        block = shared_memory.SharedMemory(create=True, size=1000)
        block.buf[:3] = b"abc"
        print(bytes(block.buf[:3]))
        block.close()
        block.unlink()
        """,
    "joblib_loky": """
        import numpy as np
        from joblib import Parallel, delayed
        big = np.ones(300_000)
        print(Parallel(n_jobs=2)(delayed(np.sum)(big * i) for i in range(3)))
        """,
    "forest_n_jobs": """
        import numpy as np
        from sklearn.ensemble import RandomForestClassifier
        x = np.random.rand(200, 3)
        print(RandomForestClassifier(10, n_jobs=2).fit(x, x[:, 0] > 0.5).predict(x).shape)
        """,
    "gradient_boosting": """
        import numpy as np
        from sklearn.ensemble import HistGradientBoostingRegressor
        x = np.random.rand(300, 3)
        print(HistGradientBoostingRegressor(max_iter=5).fit(x, x[:, 0]).predict(x).shape)
        """,
    "grid_search": """
        import numpy as np
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        x = np.random.rand(60, 2)
        print(GridSearchCV(LogisticRegression(), {"C": [1, 2]}, n_jobs=2, cv=2).fit(x, x[:, 0] > 0.5).n_splits_)
        """,
    "tempfile_and_paths": """
        import getpass, os, pathlib, tempfile
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a").write_text("x")
        print(getpass.getuser(), os.path.expanduser("~"), pathlib.Path.cwd(), pathlib.Path(__file__).name, __name__)
        """,
    "subprocess": """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import numpy; print(numpy.ones(2).sum())"],
                             capture_output=True, text=True).stdout)
        print(subprocess.check_output("echo shell", shell=True, text=True))
        """,
    "threads": """
        import queue, threading
        q = queue.Queue()
        threads = [threading.Thread(target=q.put, args=(i,)) for i in range(20)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(q.qsize())
        """,
    "loopback": """
        import socket
        with socket.create_server(("localhost", 0)) as server:
            client = socket.create_connection(server.getsockname())
            client.sendall(b"x")
            print(server.accept()[0].recv(1))
        """,
    "pickle_own_class": """
        import pickle
        class Mine:
            pass
        print(type(pickle.loads(pickle.dumps(Mine()))) is Mine)
        """,
    "time_zone_and_locale": """
        import datetime, locale, zoneinfo
        winter = datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
        print(winter.utcoffset(), locale.getpreferredencoding())
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_works(run_warm: RunProgram, name: str) -> None:
    _check(run_warm, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_works_in_a_new_interpreter(run_cold: RunProgram, name: str) -> None:
    _check(run_cold, name)


def _check(run: RunProgram, name: str) -> None:
    result = run(PROGRAMS[name], time=60.0)
    assert (result.status, result.stderr) == (Status.OK, ""), result
    assert result.stdout.strip()


def test_values(run_warm: RunProgram) -> None:
    assert run_warm(PROGRAMS["pool_spawn"]).stdout == "14\n"
    assert run_warm(PROGRAMS["tempfile_and_paths"]).stdout == "sandbox /home/sandbox /sandbox program.py __main__\n"
    assert run_warm(PROGRAMS["pickle_own_class"]).stdout == "True\n"


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_matplotlib_without_a_display(run_warm: RunProgram) -> None:
    result = run_warm(
        """
        import os
        import matplotlib.pyplot as plt
        plt.plot([1, 2])
        plt.savefig("plot.png")
        print(plt.get_backend().lower(), os.path.getsize("plot.png") > 1000)
        """,
        time=60.0,
    )
    assert (result.status, result.stdout) == (Status.OK, "agg True\n"), result.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_torch_trains(run_warm: RunProgram) -> None:
    result = run_warm(
        """
        import torch
        model = torch.nn.Linear(2, 1)
        step = torch.optim.Adam(model.parameters())
        loss = model(torch.ones(4, 2)).mean()
        loss.backward()
        step.step()
        loader = torch.utils.data.DataLoader(torch.arange(8), batch_size=4, num_workers=1)
        print([batch.sum().item() for batch in loader], torch.cuda.is_available())
        """,
        time=120.0,
        memory_mb=2048,
    )
    assert (result.status, result.stdout) == (Status.OK, "[6, 22] False\n"), result.stderr


@pytest.mark.slow
def test_torch_out_of_memory(run_warm: RunProgram) -> None:
    pytest.importorskip("torch")
    result = run_warm("import torch\ntorch.ones(1 << 40)", time=120.0)
    assert result.status is Status.OUT_OF_MEMORY, result
