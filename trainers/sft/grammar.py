"""A grammar of short, complete programs with plans: many ways to solve one task, some good, some poor."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mle_gym.survey import survey
from mle_gym.tasks.task import Task, TaskData
from trainers.sft.estimators import FAMILIES, Estimator

__all__ = ["Draft", "Grammar"]

_RANKED = {"roc_auc", "average_precision", "log_loss"}
"""Metrics of one column of probabilities or scores."""
_MATRIX = {"log_loss_multiclass"}
_SCORERS = {
    "roc_auc": ("roc_auc_score", "roc_auc_score({y}, {p})"),
    "average_precision": ("average_precision_score", "average_precision_score({y}, {p})"),
    "log_loss": ("log_loss", "log_loss({y}, {p})"),
    "log_loss_multiclass": ("log_loss", "log_loss({y}, {p})"),
    "accuracy": ("accuracy_score", "accuracy_score({y}, {p})"),
    "qwk": ("cohen_kappa_score", 'cohen_kappa_score({y}, {p}, weights="quadratic")'),
    "rmsle": ("mean_absolute_error", "mean_absolute_error({y}, {p})"),
    "rmse": ("root_mean_squared_error", "root_mean_squared_error({y}, {p})"),
    "mae": ("mean_absolute_error", "mean_absolute_error({y}, {p})"),
    "spearman": ("r2_score", "r2_score({y}, {p})"),
}
_FAST_ON_WIDE = {
    *("logistic regression", "ridge", "nearest neighbours", "decision tree", "random forest", "extra trees"),
    *("lasso", "support vectors"),
}


@dataclass(frozen=True)
class Draft:
    """A plan and a program that nobody has run yet."""

    plan: str
    program: str
    family: str
    """Name of the estimator family."""

    @property
    def response(self) -> str:
        """The text a model would write."""
        return f"{self.plan}\n```python\n{self.program}```"


class Grammar:
    """Draws programs for one task.

    A program is put together from independent choices: how columns become numbers, the estimator and its
    hyper-parameters, whether it is checked on held-out rows, whether probabilities or labels are handed in, and whether
    names come from the sample submission (generic) or from the prompt (specific).

    Args:
        task: What is to be solved.
        data: Its files; only the public folder is read.
    """

    def __init__(self, task: Task, data: TaskData) -> None:
        facts = {fact.name: fact for fact in survey(data.public_dir)}
        train, test = facts["train.csv"], facts["test.csv"]
        self.metric = task.metric
        self.kind = task.kind
        self.id = task.id_column
        self.target = next(name for name in train.columns if name not in test.columns)
        self.matrix = task.metric in _MATRIX
        self.classify = not task.kind.endswith("regression") and task.kind != "time-series"
        self.gaps = train.gaps
        self.sample = data.sample_submission
        features = [name for name in test.columns if name != self.id]
        self.numbers = [name for name in features if train.kinds[name] == "num"]
        self.categories = [name for name in features if train.kinds[name] == "cat"]
        self.dates = [name for name in features if train.kinds[name] == "date"]
        self.texts = [name for name in features if train.kinds[name] in ("text", "file")]

    def draw(self, draw: random.Random) -> Draft:
        """Return a random program for the task, with its plan."""
        return _Writer(self, draw).write()


class _Writer:
    """Writes one program; keeps its imports, lines and plan sentences."""

    def __init__(self, grammar: Grammar, draw: random.Random) -> None:
        self.g = grammar
        self.draw = draw
        self.imports: dict[str, set[str]] = {}
        self.modules: list[str] = ["import pandas as pd"]
        self.lines: list[str] = []
        self.plan: list[str] = []
        # Class columns are not in train.csv, so a matrix cannot be generic about the target.
        self.generic = not grammar.matrix and draw.random() < 0.6
        self.gaps_left = False

    def write(self) -> Draft:
        self._read()
        if self.g.kind.startswith("image"):
            self._images()
        elif self.g.kind.startswith("text"):
            self._texts()
        else:
            self._table()
        estimator = self._model()
        self._fit_and_predict(estimator)
        body = "\n".join(self.lines)
        froms = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self.imports.items())]
        program = "\n".join([*self.modules, *froms, "", body]) + "\n"
        return Draft(" ".join(self.plan), program, estimator.family)

    def _pick(self, *choices: str) -> str:
        return self.draw.choice(choices)

    def _use(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name

    @property
    def _target(self) -> str:
        return "target" if self.generic else f'"{self.g.target}"'

    @property
    def _dropped(self) -> str:
        return f'["{self.g.id}", {self._target}]'

    def _read(self) -> None:
        self.lines += [
            'train = pd.read_csv("input/train.csv")',
            'test = pd.read_csv("input/test.csv")',
            f'sub = pd.read_csv("input/{self.g.sample}")',
        ]
        if self.generic:
            self.lines.append("target = sub.columns[-1]")

    def _table(self) -> None:
        g = self.g
        if g.dates:
            self._dates()
        ways = {"numbers": 2.5, "raw": 0.7}
        if g.categories:
            ways |= {"dummies": 3.0, "factorize": 1.5, "codes": 1.5, "apart": 1.2}
        if not g.dates and len(g.numbers) >= 3 and not self.generic:
            ways["named"] = 1.2
        way = self.draw.choices(list(ways), list(ways.values()))[0]
        if way in ("dummies", "factorize", "codes"):
            self._joined(way)
        elif way == "apart":
            self._apart()
        else:
            self._columns(way)
        self._labels()

    def _joined(self, way: str) -> None:
        """Categories become numbers in train and test together."""
        fill, words = self._filling("both")
        joined = f"pd.concat([train, test]).drop(columns={self._dropped})"
        if way == "dummies":
            self.lines.append(f"both = pd.get_dummies({joined})")
            self.plan.append(self._pick("One-hot encode the categories", "Turn categories into dummies") + words)
        else:
            code = "factorize()[0]" if way == "factorize" else 'astype("category").cat.codes'
            self.lines += [
                f"both = {joined}",
                'for c in both.select_dtypes(exclude="number"):',
                f"    both[c] = both[c].{code}",
            ]
            self.plan.append(self._pick("Replace categories by codes", "Encode categories as integers") + words)
        if fill:
            self.lines.append(f"both = both.fillna({fill})")
        self.lines += ["x = both[: len(train)]", "z = both[len(train) :]"]

    def _apart(self) -> None:
        """Dummies of train; those of test are aligned with them."""
        fill, words = self._filling("x")
        self.lines += [
            f"x = pd.get_dummies(train.drop(columns={self._dropped}))",
            "z = pd.get_dummies(test).reindex(columns=x.columns, fill_value=0)",
        ]
        if fill:
            self.lines.append(f"x, z = x.fillna({fill}), z.fillna({fill})")
        self.plan.append(self._pick("One-hot encode train and test apart", "Make dummies and align test") + words)

    def _columns(self, way: str) -> None:
        """Columns as they are: the numeric ones, a few named ones, or all."""
        g = self.g
        fill, words = self._filling("x")
        start = f"train.drop(columns={self._dropped})"
        if way == "numbers":
            start += '.select_dtypes("number")'
            self.plan.append(self._pick("Use the numeric columns only", "Keep only numeric columns") + words)
        elif way == "named":
            # Prompts list the first four of many columns; only a name that was read can be copied.
            known = g.numbers if len(g.numbers) <= 10 else g.numbers[:4]
            some = set(self.draw.sample(known, self.draw.randint(3, min(5, len(known)))))
            listed = ", ".join(f'"{name}"' for name in g.numbers if name in some)
            start = f"train[[{listed}]]"
            self.plan.append(self._pick("Use a few numeric columns", "Choose some numeric columns") + words)
        else:
            self.plan.append(self._pick("Use all columns as they are", "Take the columns as features") + words)
        if "x." in fill:  # a statistic of the features: they must exist first, and test is filled before they are
            self.lines += [
                f"x = {start}",
                f"z = test[x.columns].fillna({fill})",
                f"x = x.fillna({fill})",
            ]
        else:
            end = f".fillna({fill})" if fill else ""
            self.lines += [f"x = {start}{end}", f"z = test[x.columns]{end}"]

    def _filling(self, name: str) -> tuple[str, str]:
        """Return what ``fillna`` gets (``""``: nothing is filled here) and the end of the sentence in the plan."""
        gaps = bool(self.g.gaps)
        if self.draw.random() < (0.15 if gaps else 0.6):
            self.gaps_left = gaps
            return "", "."
        value = self._pick("0", "0", "-1", f"{name}.mean()", f"{name}.median()")
        words = {"0": "zero", "-1": "-1"}.get(value, "the mean" if "mean" in value else "the median")
        return value, self._pick(f" and fill gaps with {words}.", f" and replace missing values by {words}.")

    def _dates(self) -> None:
        parts = self.draw.sample(["year", "month", "dayofweek", "dayofyear"], self.draw.randint(2, 3))
        self.lines.append("for d in (train, test):")
        self.lines.append(f'    t = pd.to_datetime(d.pop("{self.g.dates[0]}"))')
        self.lines += [f'    d["{part}"] = t.dt.{part}' for part in parts]
        self.plan.append(f"Take {', '.join(parts[:-1])} and {parts[-1]} from the date.")

    def _labels(self) -> None:
        self.lines.append(f"y = train[{self._target}]")

    def _images(self) -> None:
        self.modules[:0] = ["import numpy as np"]
        self._use("PIL", "Image")
        column = self.g.texts[0]
        value = self._pick("", " / 255", " / 16")
        self.lines += [
            "def load(files):",
            f'    return np.array([np.asarray(Image.open("input/" + f)).ravel() for f in files]){value}',
            f'x = load(train["{column}"])',
            f'z = load(test["{column}"])',
        ]
        self.plan.append(self._pick("Read the images as vectors of pixels.", "Flatten each image into its pixels."))
        self._labels()

    def _texts(self) -> None:
        columns = self.g.texts + self.g.categories
        vectorizer = self._pick("TfidfVectorizer", "TfidfVectorizer", "CountVectorizer")
        self._use("sklearn.feature_extraction.text", vectorizer)
        arguments: dict[str, str] = {}
        characters = self.g.metric == "spearman" or self.draw.random() < 0.2
        if characters:
            arguments |= {
                "analyzer": self._pick('"char"', '"char_wb"'),
                "ngram_range": self._pick("(1, 3)", "(2, 3)", "(2, 4)"),
            }
        elif self.draw.random() < 0.3:
            arguments["ngram_range"] = "(1, 2)"
        if self.draw.random() < 0.7:
            arguments["max_features"] = self._pick("500", "1000", "2000", "5000")
        if not characters and self.draw.random() < 0.3:
            arguments["stop_words"] = '"english"'
        written = ", ".join(f"{name}={value}" for name, value in arguments.items())
        self.lines.append(f"v = {vectorizer}({written})")
        if len(columns) == 1:
            texts = [f'{frame}["{columns[0]}"]' for frame in ("train", "test")]
        else:
            some = self.draw.sample(columns, self.draw.randint(1, len(columns)))
            texts = [' + " " + '.join(f'{frame}["{c}"].fillna("")' for c in some) for frame in ("train", "test")]
        self.lines += [f"x = v.fit_transform({texts[0]})", f"z = v.transform({texts[1]})"]
        unit = "characters" if characters else "words"
        self.plan.append(self._pick(f"Count {unit} of the text.", f"Make a bag of {unit} from the text."))
        self._labels()

    def _model(self) -> Estimator:
        wide = self.g.kind.startswith(("image", "text"))
        candidates = [
            e
            for e in FAMILIES
            if e.name(classify=self.g.classify)
            and (not wide or e.family in _FAST_ON_WIDE)
            and (e.probabilities or not self.g.matrix)
            # Nobody would choose an estimator that refuses what the lines above left in.
            and (e.takes_gaps or not self.gaps_left or self.draw.random() < 0.5)
        ]
        estimator = self.draw.choices(candidates, [e.weight for e in candidates])[0]
        name = estimator.name(classify=self.g.classify)
        self._use(estimator.module, name)
        arguments = estimator.arguments(self.draw, classify=self.g.classify)
        written = f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})"
        steps, words = [], ""
        if self.gaps_left and not estimator.takes_gaps:
            strategy = self._pick("", "", 'strategy="median"')
            steps.append(f"{self._use('sklearn.impute', 'SimpleImputer')}({strategy})")
            words += " on imputed features"
        if self.draw.random() < (0.6 if estimator.scaled else 0.08):
            sparse = "with_mean=False" if self.g.kind.startswith("text") else ""
            steps.append(f"{self._use('sklearn.preprocessing', 'StandardScaler')}({sparse})")
            words += " and scaled features" if words else " on scaled features"
        if steps:
            written = f"{self._use('sklearn.pipeline', 'make_pipeline')}({', '.join([*steps, written])})"
        self.lines.append(f"model = {written}")
        said = [f"{key} {value}".replace('"', "") for key, value in arguments.items() if self.draw.random() < 0.5]
        detail = f" with {' and '.join(said)}" if said else ""
        self.plan.append(self._pick("Fit", "Train") + f" {estimator.family}{detail}{words}.")
        return estimator

    def _fit_and_predict(self, estimator: Estimator) -> None:
        g = self.g
        how, words = self._hand_in(estimator)
        logged = (
            g.metric in ("rmsle", "mae", "rmse")
            and not g.dates
            and self.draw.random() < (0.5 if g.metric == "rmsle" else 0.1)
        )
        check = self.draw.choices(["none", "split", "score"], [0.45, 0.35, 0.2])[0]
        if logged:
            self.modules[:0] = ["import numpy as np"]
            self.lines.append("y = np.log1p(y)")
            self.plan.append("Predict the logarithm.")
        if check == "split":
            self._use("sklearn.model_selection", "train_test_split")
            scorer, call = _SCORERS[g.metric]
            self._use("sklearn.metrics", scorer)
            size = self._pick("", ", test_size=0.2", ", random_state=0")
            self.lines += [
                f"x_fit, x_val, y_fit, y_val = train_test_split(x, y{size})",
                "model.fit(x_fit, y_fit)",
                f"print({call.format(y='y_val', p=how.format('x_val'))})",
            ]
            if self.draw.random() < 0.4:
                self.lines.append("model.fit(x, y)")
            self.plan.append(self._pick("Check it on held-out rows.", "Validate on a split."))
        else:
            self.lines.append("model.fit(x, y)")
            if check == "score":
                self.lines.append("print(model.score(x, y))")
        self.plan.append(words)
        predicted = how.format("z")
        if logged:
            predicted = f"np.expm1({predicted})"
        elif g.metric == "rmsle" and self.draw.random() < 0.5:
            predicted += ".clip(0)"
        self._write(predicted)

    def _hand_in(self, estimator: Estimator) -> tuple[str, str]:
        """Return the expression for predictions, with a place for the features, and its sentence."""
        if self.g.matrix:
            return "model.predict_proba({})", "Predict the probability of each class."
        if self.g.metric in _RANKED:
            smooth = 0.9 if self.g.metric == "log_loss" else 0.85
            if self.draw.random() < smooth and estimator.probabilities:
                return "model.predict_proba({})[:, 1]", self._pick("Predict probabilities.", "Hand in probabilities.")
            if self.draw.random() < smooth and not estimator.probabilities and self.g.metric != "log_loss":
                return "model.decision_function({})", "Hand in decision values."
        return "model.predict({})", self._pick("Predict the test rows.", "Predict the target of test.")

    def _write(self, predicted: str) -> None:
        g = self.g
        if g.matrix:
            self.lines.append(f"sub[sub.columns[1:]] = {predicted}")
        elif self.generic or self.draw.random() < 0.5:
            self.lines.append(f"sub[{self._target}] = {predicted}")
        else:
            self.lines.append(
                f'pd.DataFrame({{"{g.id}": test["{g.id}"], {self._target}: {predicted}}})'
                '.to_csv("submission.csv", index=False)'
            )
            self.lines = [line for line in self.lines if not line.startswith("sub = ")]
            return
        self.lines.append('sub.to_csv("submission.csv", index=False)')
