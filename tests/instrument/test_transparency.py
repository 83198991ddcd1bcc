"""A program with hooks behaves, prints and fails as without them."""

from __future__ import annotations

import re

import pytest

from .harness import Run
from .programs import LOAD

PROGRAMS = {
    "missing_package": "import no_such_package",
    "misspelt_name": "from sklearn.linear_model import LogisticRegresion",
    "error_in_fit": LOAD + "from sklearn.linear_model import LogisticRegression\nLogisticRegression().fit(X, y[:10])",
    "error_in_predict": LOAD
    + """from sklearn.pipeline import make_pipeline
from sklearn.linear_model import LogisticRegression
import traceback, logging
m = make_pipeline(LogisticRegression()).fit(X, y)
try:
    m.predict(test)
except ValueError:
    traceback.print_exc()
    logging.exception("hm")
    print(traceback.format_exc())
try:
    m.predict(test)
except ValueError as error:
    raise RuntimeError("no") from error
""",
    "error_in_error": LOAD
    + """from sklearn.linear_model import LogisticRegression
try:
    LogisticRegression().predict(X)
except Exception:
    raise ExceptionGroup("both", [ValueError(1), TypeError(2)])
""",
    "bad_arguments": LOAD
    + """from sklearn.pipeline import make_pipeline
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import SVC
from sklearn.metrics import f1_score
print(hasattr(SVC(), "predict_proba"), hasattr(SGDClassifier(), "predict_proba"))
def attempt(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        print(type(error), error)
attempt(LogisticRegression().fit, X)
attempt(LogisticRegression.fit)
attempt(LogisticRegression, C=1, foo=3)
attempt(lambda: SGDClassifier().predict_proba)
attempt(f1_score, y, y[1:])
attempt(f1_score, y)
attempt(LogisticRegression(C="x").fit, X, y)
make_pipeline(LogisticRegression()).predict(T)
""",
    "warnings": LOAD
    + """from sklearn.linear_model import LogisticRegression
from sklearn.base import BaseEstimator, ClassifierMixin
import warnings
class M(ClassifierMixin, BaseEstimator):
    def __init__(self, k=1):
        self.k = k
        warnings.warn("made", stacklevel=2)
    def fit(self, X, y):
        warnings.warn("mine", stacklevel=2)
        return self
m = M(3)
m.fit(X, y)
LogisticRegression(max_iter=1).fit(X, y).predict(T.values)
""",
    "inspection": LOAD
    + """import inspect
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
m = LogisticRegression(C=2).fit(X, y)
forest, pipeline = RandomForestClassifier(), Pipeline([("m", m)])
for f in (LogisticRegression, LogisticRegression.fit, m.fit, forest.fit, pipeline.predict):
    print(inspect.signature(f), f.__name__, f.__qualname__, f.__module__, len(f.__doc__))
print(m, repr(m.fit)[:60], type(m.fit), m.fit.__self__ is m, inspect.getsource(LogisticRegression.fit)[:80])
print(sorted(vars(m)), m.get_params(), clone(m), is_classifier(m))
class S(BaseEstimator, ClassifierMixin):
    "Doc."
    def fit(self, X, y): "fits"; self.v_ = 1; return self
    def predict(self, X): return np.zeros(len(X), int)
print(inspect.signature(S), S.fit.__doc__, sorted(S.__dict__), sorted(dir(S)), S().fit(X, y).score(X, y))
try:
    S(4)
except TypeError as error:
    print(error)
class P(BaseEstimator):
    @property
    def q(self): return 1
try:
    P().q = 3
except AttributeError as error:
    print(error)
class Logged(BaseEstimator):
    def __setattr__(self, name, value):
        print("set", name)
        super().__setattr__(name, value)
    def fit(self, X): self.a_ = 1
Logged().fit(X)
class Base:
    def __setattr__(self, name, value): object.__setattr__(self, name, value * 2)
class Doubled(BaseEstimator, Base):
    def __init__(self, k=1): self.k = k
print(Doubled(4).k)
""",
    "pickling": LOAD
    + """import copy, io, joblib, pickle
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
m = LogisticRegression().fit(X, y)
f = io.BytesIO(); joblib.dump(m, f); f.seek(0)
print(len(f.getvalue()), len(pickle.dumps(m)), joblib.load(f).predict(T)[:9], copy.deepcopy(m).coef_)
print(pickle.loads(pickle.dumps(f1_score)) is f1_score, len(pickle.dumps(make_scorer(accuracy_score))))
print(pickle.loads(pickle.dumps(m.fit)).__name__, len(pickle.dumps(LogisticRegression.predict)))
""",
    "worker_processes": LOAD
    + """import cloudpickle, subprocess, sys
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import cross_val_score
class S(ClassifierMixin, BaseEstimator):
    def __init__(self, k=1): self.k = k
    def fit(self, X, y): self.v_ = y.mean(); return self
    def predict(self, X): return np.full(len(X), self.v_ > .5)
m = LogisticRegression()
open("s.pkl", "wb").write(cloudpickle.dumps(S().fit(X, y)))
code = "import pickle, numpy as np; s = pickle.load(open('s.pkl', 'rb')); print(s.fit(0, np.ones(4)).predict([1, 2]))"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True))
print(cross_val_score(S(), X, y, cv=2, n_jobs=2))
print(cross_val_score(m, X, y, cv=2, n_jobs=2, scoring=make_scorer(f1_score)))
""",
    "processes_and_threads": LOAD
    + """import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from sklearn.linear_model import LogisticRegression
m = LogisticRegression().fit(X, y)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(m.predict, [T[:5], T[5:9]]))
with ThreadPoolExecutor(2) as pool:
    print([len(r) for r in pool.map(m.predict, [T, T])])
""",
    "error_in_thread": LOAD
    + """import threading
from sklearn.linear_model import LogisticRegression
thread = threading.Thread(target=lambda: LogisticRegression().fit(X, y[:3]), name="worker")
thread.start(); thread.join()
""",
    "deep_recursion": LOAD
    + """from sklearn.base import BaseEstimator
class R(BaseEstimator):
    def __init__(self, k=1): self.k = k
    def fit(self, n): return self.fit(n + 1)
try:
    R().fit(0)
except RecursionError as error:
    print(error)
""",
    "exit_code": LOAD + "import sys, atexit\natexit.register(lambda: print('bye'))\nsys.exit(3)",
    "own_excepthook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0])\n1 / 0",
    "reload": "import sklearn.base, importlib, sklearn\nimportlib.reload(sklearn)\nprint(sklearn.__spec__.loader)",
    "meta_path": "import importlib.util, sklearn.base, sys\nprint(importlib.util.find_spec('sklearn.base').loader)\n"
    "import pkgutil, importlib.metadata\nprint(importlib.metadata.version('numpy'))\n"
    "print(sklearn.base.__loader__.get_filename())",
}


SLOW = {"worker_processes"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PROGRAMS])
def test_same_output_and_exit_code(run, run_bare, name):
    bare, hooked = run_bare(PROGRAMS[name]), run(PROGRAMS[name])
    assert shown(hooked) == shown(bare)
    assert not any(item.name.startswith("hook_error") for item in hooked.reached)


def shown(result: Run) -> tuple[str, str, int]:
    def plain(text: str) -> str:
        return re.sub("0x[0-9a-f]+", "0x", text)

    return plain(result.stdout), plain(result.stderr), result.code


def test_tracebacks_show_only_the_program_and_its_libraries(run):
    error = run(PROGRAMS["error_in_fit"]).stderr
    assert re.findall(r'File "([^"]*)"', error)[0].endswith("program.py")
    assert "mle_gym" not in error.replace("/mle_gym", "")
    assert "importlib" not in error
