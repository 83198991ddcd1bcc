"""Models outside scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mle_gym.instrument import MILESTONES, fitted_estimators

from .harness import Harness
from .programs import LOAD, WRITE

ALL = set(MILESTONES)
LOADED = {"imported_packages", "loaded_data"}

TORCH = (
    LOAD
    + """import torch
from torch import nn
torch.manual_seed(0)
A, b, C = (torch.tensor(v, dtype=torch.float32) for v in (X.values, y.values, T.values))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    def forward(self, x):
        return self.layers(x).squeeze(-1)
net, loss = Net(), nn.BCEWithLogitsLoss()
step = torch.optim.Adam(net.parameters(), lr=0.05)
"""
)
TRAIN = """
for i in range(0, 240, 40):
    step.zero_grad()
    loss(net(A[i:i + 40]), b[i:i + 40]).backward()
    step.step()
"""
EVALUATE = """
net.eval()
with torch.no_grad():
    print(loss(net(A[240:]), b[240:]).item())
"""
PREDICT = """
with torch.inference_mode():
    p = torch.cat([net(part) for part in C.split(30)]).numpy() > 0
"""
ROOT = "estimator:torch.nn.Module"


@pytest.fixture(scope="module")
def torch_harness() -> Iterator[Harness]:
    pytest.importorskip("torch")
    harness = Harness(["pandas", "torch", "torch._dynamo"])  # an optimizer imports the last one at its first step
    yield harness
    harness.close()


def test_torch_program_reaches_all(run, torch_harness):
    result = run(TORCH + TRAIN + EVALUATE + PREDICT + WRITE, harness=torch_harness)
    assert (result.code, result.stderr) == (0, "")
    assert result.names == ALL | {ROOT}


@pytest.mark.slow
def test_torch_in_a_cold_interpreter(run, cold):
    result = run(TORCH + TRAIN + EVALUATE + PREDICT + WRITE, harness=cold)
    assert (result.code, result.stderr) == (0, "")
    assert result.names == ALL | {ROOT}


TORCH_PARTS = {
    "only_defined": (TORCH, LOADED | {"defined_model"}),
    "untrained_predicts": (TORCH + PREDICT, LOADED | {"defined_model"}),
    "backward_without_step": (TORCH + "loss(net(A), b).backward()", LOADED | {"defined_model"}),
    "step_without_backward": (TORCH + "net(A)\nstep.step()", LOADED | {"defined_model"}),
    "few_rows": (TORCH + "loss(net(A[:9]), b[:9]).backward()\nstep.step()", LOADED | {"defined_model"}),
    "training_is_no_prediction": (TORCH + TRAIN + "net(C)", LOADED | {"defined_model", "trained_model", ROOT}),
    "validation_is_no_test": (
        TORCH + TRAIN + "net.eval()\nnet(A[:60])",
        LOADED | {"defined_model", "trained_model", ROOT},
    ),
    "training_loss_is_no_evaluation": (TORCH + TRAIN, LOADED | {"defined_model", "trained_model", ROOT}),
    "nothing_but_tensors": (
        LOAD + "import torch\nw = torch.zeros(4)\np = (torch.tensor(T.values).float() @ w)",
        LOADED,
    ),
}


@pytest.mark.parametrize("part", TORCH_PARTS)
def test_torch_parts(run, torch_harness, part):
    source, expected = TORCH_PARTS[part]
    result = run(source, harness=torch_harness)
    assert result.names == expected, result.stderr


def test_torch_behaves_as_without_hooks(run, work, torch_harness):
    from mle_gym.sandbox.base import Program

    source = (
        TORCH
        + TRAIN
        + EVALUATE
        + (
            "import copy, io, pickle, inspect, traceback\n"
            "print(net, inspect.signature(nn.Linear), inspect.signature(net.__call__), nn.Module.__call__.__name__)\n"
            "print([round(v.sum().item(), 6) for v in copy.deepcopy(net).state_dict().values()])\n"
            "f = io.BytesIO(); torch.save(net.layers, f); f.seek(0)\n"
            "print(torch.load(f, weights_only=False)(C).sum().item(), len(pickle.dumps(nn.Linear)))\n"
            "print(torch.jit.script(net.layers)(C).sum().item(), torch.compile(net, backend='eager')(C).sum().item())\n"
            "net.register_forward_hook(lambda *a: print('hooked'))\nnet(C)\n"
            "try:\n    net(T)\nexcept Exception:\n    traceback.print_exc()\n"
            "net(C[:, :3])\n"
        )
    )
    hooked, bare = run(source, harness=torch_harness), torch_harness.run(Program(source), work)
    assert "mat1 and mat2 shapes cannot be multiplied" in bare.stderr
    assert (hooked.stdout, hooked.stderr, hooked.code) == (bare.stdout, bare.stderr, bare.code)


STATSMODELS = {
    "ols": (
        "import statsmodels.api as sm\nr = sm.OLS(y, X).fit()\np = r.predict(T) > 0.5",
        "OLS",
    ),
    "logit_formula": (
        "import statsmodels.formula.api as smf\nr = smf.logit('y ~ a', train).fit(disp=0)\np = r.predict(test) > 0.5",
        "Logit",
    ),
    "series": (
        "from statsmodels.tsa.ar_model import AutoReg\np = AutoReg(y.values.astype(float), 2).fit().forecast(100)",
        "AutoReg",
    ),
}


@pytest.mark.parametrize("style", STATSMODELS)
def test_statsmodels(run, style):
    pytest.importorskip("statsmodels")
    body, family = STATSMODELS[style]
    result = run(LOAD + body + WRITE)
    assert result.stderr == ""
    assert fitted_estimators(result.reached) == (family,)
    assert result.names == (ALL - {"evaluated"}) | {f"estimator:{family}"}


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_boosting(run, package):
    pytest.importorskip(package)
    estimator = {"lightgbm": "LGBMClassifier(n_estimators=3, verbose=-1)", "xgboost": "XGBClassifier(n_estimators=3)"}[
        package
    ]
    source = LOAD + (
        f"import {package}\nm = {package}.{estimator}\nm.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])])\n"
        "p = m.predict(T)\n"
    )
    assert run(source + WRITE).names == ALL | {"estimator:" + estimator.partition("(")[0]}


NATIVE = {
    "lightgbm": "d = lib.Dataset(X, y)\nm = lib.train({'verbose': -1}, d, 3)\np = m.predict(T)\n",
    "xgboost": "d = lib.DMatrix(X, y)\nm = lib.train({'max_depth': 2}, d, 3)\np = m.predict(lib.DMatrix(T))\n",
}


@pytest.mark.parametrize("package", NATIVE)
def test_native_boosting(run, package):
    pytest.importorskip(package)
    result = run(LOAD + f"import {package} as lib\n" + NATIVE[package] + WRITE)
    assert result.names == (ALL - {"evaluated"}) | {f"estimator:{package}.train"}, result.stderr
