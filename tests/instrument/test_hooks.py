"""Programs of every style, run for real: which milestones their events are evidence of."""

from __future__ import annotations

import os
import re
import sys

import pytest

from mle_gym.instrument import MILESTONES, credit, fitted_estimators, make_instrumenter
from mle_gym.instrument.bundle import hooks_source
from mle_gym.sandbox.base import Program

from .programs import LOAD, WRITE

ALL = set(MILESTONES)
LOADED = {"imported_packages", "loaded_data"}
FITTED = LOADED | {"defined_model", "trained_model"}

MODELS = {
    "pipeline": (
        """from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.linear_model import LogisticRegression
m = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
print(m.score(X, y))
p = m.predict(T)""",
        ("LogisticRegression",),
    ),
    "grid_search": (
        """from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
m = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, y)
p = m.predict(T)""",
        ("GridSearchCV",),
    ),
    "forest_threads": (
        """from sklearn.ensemble import RandomForestClassifier
m = RandomForestClassifier(40, n_jobs=2, oob_score=True, bootstrap=True, random_state=0).fit(X, y)
p = m.predict_proba(T)[:, 1] > 0.5""",
        ("RandomForestClassifier",),
    ),
    "boosting": (
        """from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
Xa, Xv, ya, yv = train_test_split(X, y, random_state=0)
m = HistGradientBoostingClassifier(max_iter=5, early_stopping=True).fit(Xa, ya)
print(roc_auc_score(y_true=yv, y_score=m.predict_proba(Xv)[:, 1]))
p = m.predict(T)""",
        ("HistGradientBoostingClassifier",),
    ),
    "neighbors_in_portions": (
        """from sklearn.neighbors import KNeighborsClassifier
from sklearn.metrics import f1_score
m = KNeighborsClassifier(3)
m.fit(X.values[:200], y.values[:200])
print(f1_score(y[200:], m.predict(X.values[200:])))
p = np.concatenate([m.predict(T.values[i:i + 30]) for i in range(0, 100, 30)])""",
        ("KNeighborsClassifier",),
    ),
    "naive_bayes_partial": (
        """from sklearn.naive_bayes import GaussianNB
from sklearn.metrics import accuracy_score
m = GaussianNB()
for i in range(0, 300, 5):
    m.partial_fit(X.values[i:i + 5], y.values[i:i + 5], classes=[0, 1])
print(accuracy_score(y, m.predict(X.values)))
p = m.predict(T.values)""",
        ("GaussianNB",),
    ),
    "column_transformer": (
        """from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.svm import SVC
from sklearn.model_selection import cross_val_score
pre = ColumnTransformer([("s", StandardScaler(), ["a", "b"]), ("k", KBinsDiscretizer(3, strategy="kmeans"), ["c"])])
m = Pipeline([("pre", pre), ("svc", SVC())])
print(cross_val_score(m, X, y, cv=3))
p = m.fit(X, y).predict(T)""",
        ("SVC",),
    ),
    "own_class": (
        """from sklearn.base import BaseEstimator, ClassifierMixin
class Stump(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.cut_ = X["a"].median()
        return self
    def predict(self, X):
        return (X["a"] > self.cut_).astype(int).values
m = Stump().fit(X, y)
print(m.score(X, y))
p = m.predict(T)""",
        ("Stump",),
    ),
    "own_meta_class": (
        """from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_squared_error
class Mean(BaseEstimator):
    def __init__(self, models):
        self.models = models
    def fit(self, X, y):
        self.models_ = [clone(m).fit(X, y) for m in self.models]
        return self
    def predict(self, X):
        return np.mean([m.predict(X) for m in self.models_], axis=0)
m = Mean([Ridge(), LinearRegression()]).fit(X, y)
print(mean_squared_error(y, m.predict(X)))
p = m.predict(T) > 0.5""",
        ("Mean",),
    ),
    "several": (
        """from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.model_selection import cross_validate
for m in (GaussianNB(), LogisticRegression()):
    print(cross_validate(m, X, y, cv=2)["test_score"])
    p = m.fit(X, y).predict(T)""",
        ("GaussianNB", "LogisticRegression"),
    ),
}


@pytest.mark.parametrize("style", MODELS)
def test_complete_programs_reach_all(run, style):
    body, families = MODELS[style]
    result = run(LOAD + body + WRITE)
    assert result.stderr == ""
    assert result.names - {name for name in result.names if name.startswith("estimator:")} == ALL
    assert fitted_estimators(result.reached) == families
    assert credit(result.reached) == 0.7
    order = [item.name for item in result.reached]
    assert order.index("loaded_data") < order.index("trained_model") < order.index("wrote_submission")
    assert {item.evidence for item in result.reached} == {"interpreter"}


PARTIAL = {
    "closed_form": (
        LOAD + "w = np.linalg.lstsq(X.values, y.values, rcond=None)[0]\np = (T.values @ w > 0.5).astype(int)" + WRITE,
        LOADED | {"wrote_submission"},
    ),
    "copies_the_sample": (
        "import shutil\nshutil.copy('input/sample_submission.csv', 'submission.csv')\nopen('x', 'w').close()",
        {"wrote_submission"},
    ),
    "renames": (
        LOAD + "p = 0\ntest[['id']].assign(y=0).to_csv('tmp.csv')\nimport os\nos.rename('tmp.csv', 'submission.csv')",
        LOADED | {"wrote_submission"},
    ),
    "left_open": (
        LOAD
        + "import os\nf = open('submission.csv', 'w'); f.write('id'); f.flush()\nopen('x', 'w').close()\nos._exit(0)",
        LOADED,
    ),
    "empty_submission": (LOAD + "open('submission.csv', 'w').close()", LOADED),
    "reads_another_train": ("import pandas as pd\npd.read_csv('train.csv')", {"imported_packages"}),
    "reads_the_sample": ("import pandas as pd\npd.read_csv('input/sample_submission.csv')", {"imported_packages"}),
    "absolute_path": ("import os, numpy\nos.chdir('/')\nopen(os.environ.get('X', '%s/input/train.csv'))", LOADED),
    "standard_library": ("import json, csv\nprint(list(csv.reader(open('input/train.csv')))[0])", {"loaded_data"}),
    "misspelt_name": ("import numpy as np\nfrom sklearn.linear_model import Logistic\n", set()),
    "missing_package": ("import numpy as np\nimport no_such_package\n", set()),
    "optional_package": (
        "import numpy as np\ntry:\n    import no_such\nexcept ImportError:\n    pass\n1 / 0",
        {"imported_packages"},
    ),
    "late_import": ("def main():\n    import numpy as np\n    return np\nmain()", {"imported_packages"}),
    "below_the_block": ("import os\nprint(os.name)\nx = len('')\nimport numpy\n1 / 0", {"imported_packages"}),
    "constant_between": ("import numpy as np\nSEED = 3\nimport no_such\n", set()),
    "two_in_a_line": ("import numpy as np, no_such\n", set()),
    "many_lines": (
        "import os\nfrom sklearn.metrics import (\n    f1_score,\n    accuracy_score,\n)\nx = 1",
        {"imported_packages"},
    ),
    "wrong_keyword": (LOAD + "from sklearn.svm import SVC\nSVC(depth=3)", LOADED),
    "only_defined": (LOAD + "from sklearn.svm import SVC\nm = SVC()\nm.fit(X)", LOADED | {"defined_model"}),
    "only_transformers": (
        LOAD
        + "from sklearn.preprocessing import StandardScaler, KBinsDiscretizer\nfrom sklearn.decomposition import PCA\n"
        "from sklearn.pipeline import make_pipeline\nprint(PCA(2).fit(X).score_samples(X).shape)\n"
        "make_pipeline(StandardScaler(), KBinsDiscretizer(3, strategy='kmeans')).fit(X, y)",
        LOADED,
    ),
    "toy_fit": (
        LOAD
        + "from sklearn.linear_model import Ridge\nm = Ridge().fit([[0.0] * 4, [1] * 4], [0, 1])\nm.predict(T.values)",
        LOADED | {"defined_model"},
    ),
    "small_share": (
        LOAD + "from sklearn.linear_model import Ridge\nRidge().fit(X[:29], y[:29])",
        LOADED | {"defined_model"},
    ),
    "enough_share": (
        LOAD + "from sklearn.linear_model import Ridge\nRidge().fit(X[:30], y[:30])",
        FITTED | {"estimator:Ridge"},
    ),
    "failed_predict": (
        LOAD + "from sklearn.linear_model import Ridge\nRidge().fit(X, y).predict(test)",
        FITTED | {"estimator:Ridge"},
    ),
    "validation_is_no_test": (
        LOAD + "from sklearn.linear_model import Ridge\nm = Ridge().fit(X, y)\nm.predict(X[:60])",
        FITTED | {"estimator:Ridge"},
    ),
    "portions_broken_by_metric": (
        LOAD + "from sklearn.linear_model import Ridge\nfrom sklearn.metrics import r2_score\nm = Ridge().fit(X, y)\n"
        "r2_score(y[:60], m.predict(X[:60]))\nm.predict(T[:40])",
        FITTED | {"estimator:Ridge", "evaluated"},
    ),
    "folds_as_large_as_test": (
        LOAD + "from sklearn.linear_model import Ridge\nfrom sklearn.model_selection import cross_val_predict\n"
        "cross_val_predict(Ridge(), X, y, cv=3)",
        FITTED,
    ),
    "test_never_read": (
        "import pandas as pd\nfrom sklearn.linear_model import Ridge\nt = pd.read_csv('input/train.csv')\n"
        "m = Ridge().fit(t[['a']], t['y'])\nm.predict(t[['a']][:100])",
        FITTED | {"estimator:Ridge"},
    ),
    "compared_with_itself": (LOAD + "from sklearn.metrics import f1_score\nf1_score(y, y)", LOADED),
    "four_labels": (LOAD + "from sklearn.metrics import f1_score\nf1_score(y[:4], y[1:5])", LOADED),
    "failed_metric": (LOAD + "from sklearn.metrics import f1_score\nf1_score(y, y[1:])", LOADED),
    "pairwise_is_no_metric": (
        LOAD + "from sklearn.metrics import pairwise_distances, silhouette_score\nsilhouette_score(X, y)\n"
        "pairwise_distances(X, T)",
        LOADED,
    ),
    "metric_alone": (LOAD + "from sklearn.metrics import f1_score\nf1_score(y, X['a'] > 0)", LOADED | {"evaluated"}),
    "fit_fails_inside_search": (
        LOAD + "from sklearn.model_selection import GridSearchCV\nfrom sklearn.svm import SVC\n"
        "GridSearchCV(SVC(), {'C': [1]}, cv=2, error_score='raise').fit(X.assign(e='x'), y)",
        LOADED | {"defined_model"},
    ),
}


@pytest.mark.parametrize("style", PARTIAL)
def test_partial_programs(run, work, style):
    source, expected = PARTIAL[style]
    result = run(source.replace("%s", str(work)))
    assert result.names == expected, result.stderr


def test_printed_text_earns_nothing(run):
    lines = [f"print({text!r})" for name in MILESTONES for text in (name, name.replace("_", " "), f"milestone: {name}")]
    result = run("\n".join([*lines, "import sys", "sys.stderr.write('trained_model')", "open('trained_model', 'w')"]))
    assert result.code == 0
    assert "trained model" in result.stdout
    assert result.names == set()


def test_replaced_builtins_change_nothing(run):
    source = (
        "import builtins, io\nreal = builtins.open\nprinted = builtins.print\n"
        "builtins.open = lambda *a, **k: real(*a, **k)\nbuiltins.print = lambda *a, **k: None\n"
        + LOAD
        + MODELS["pipeline"][0]
        + WRITE
    )
    assert run(source).names >= ALL


def test_deleted_modules_are_seen_again(run):
    source = (
        LOAD
        + "import sys\nfor name in [n for n in sys.modules if n.split('.')[0] == 'sklearn']: del sys.modules[name]\n"
    )
    result = run(source + MODELS["own_class"][0] + WRITE)
    assert result.stderr == ""
    assert result.names >= ALL


def test_without_modules_the_program_ends_as_it_would(run, run_bare):
    source = "import sys\nsys.modules.clear()\nimport pandas\nx = open('input/train.csv').read(2)\nprint(x)"
    assert (run(source).code, run(source).stdout) == (run_bare(source).code, run_bare(source).stdout)


def test_cut_program_keeps_what_it_reached(run):
    source = (
        LOAD + "from sklearn.linear_model import Ridge\nfrom sklearn.model_selection import GridSearchCV\nimport os\n"
        "class Slow(Ridge):\n    def fit(self, X, y):\n        self.n = getattr(self, 'n', 0) + 1\n"
        "        super().fit(X, y)\n        if len(X) == 300: os.kill(os.getpid(), 9)\n        return self\n"
        "GridSearchCV(Slow(), {'alpha': [1.0]}, cv=2).fit(X, y)"
    )
    result = run(source)
    assert result.code == -9
    assert result.names == FITTED  # the search itself never ended: nothing was evaluated


def test_eight_families_at_most(run):
    source = LOAD + (
        "from sklearn.dummy import DummyClassifier\nfor i in range(12):\n"
        "    type(f'Model{i}', (DummyClassifier,), {})().fit(X, y)\n"
    )
    assert fitted_estimators(run(source).reached) == tuple(f"Model{i}" for i in range(8))


def test_cold_interpreter(run, cold):
    body, families = MODELS["boosting"]
    result = run(LOAD + body + WRITE, harness=cold)
    assert result.stderr == ""
    assert result.names >= ALL
    assert fitted_estimators(result.reached) == families


def test_hooks_import_nothing_heavy(cold, data, work):
    source = "import sys\nprint(*sorted(sys.modules))"
    without = set(cold.run(Program(source), work).stdout.split())
    hooked = set(cold.run(Program(source, hooks=hooks_source(), context={}), work).stdout.split())
    assert {name.partition(".")[0] for name in hooked - without} <= {"binascii", "marshal", "threading", "functools"}


def test_other_python_versions_get_the_source(cold, data, work):
    text = hooks_source().replace(f"({sys.hexversion},", "(0,")
    assert text != hooks_source()
    assert cold.run(Program("import numpy", hooks=text, context={}), work).names == {"imported_packages"}


def test_broken_hook_leaves_the_program_alone(warm, data, work):

    program = make_instrumenter("probe").instrument(LOAD + MODELS["pipeline"][0] + WRITE, data)
    # ``rows`` fails whenever a hook asks for it.
    text = program.hooks.replace("exec(_code)", "exec(_code)\ndef rows(value): raise KeyError('rows')\n")
    result = warm.run(Program(program.source, hooks=text, context=program.context), work)
    assert (result.code, result.stderr) == (0, "")
    errors = sorted(name for name in result.names if name.startswith("hook_error:"))
    assert errors[0].startswith("hook_error:after_fit:KeyError:")
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}", name) for name in result.names)
    assert len(errors) <= 3
    assert "trained_model" not in result.names
    assert "wrote_submission" in result.names


def test_broken_channel_leaves_the_program_alone(warm, data, work):
    source = LOAD + MODELS["pipeline"][0] + WRITE + "print('end')"
    close = "import os\nfor fd in range(3, 64):\n    try: os.close(fd)\n    except OSError: pass\n"
    program = make_instrumenter("probe").instrument(close + source, data)
    result = warm.run(program, work)
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.endswith("end\n")
    assert os.path.exists(work / "submission.csv")
