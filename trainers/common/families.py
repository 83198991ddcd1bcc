"""Which family of models a program uses, read from its syntax tree."""

from __future__ import annotations

import ast
import warnings

from mle_gym.syntax import parse

__all__ = ["family"]

_MODULES = {
    "sklearn.linear_model": "linear",
    "sklearn.discriminant_analysis": "linear",
    "statsmodels": "linear",
    "sklearn.naive_bayes": "naive Bayes",
    "sklearn.neighbors": "neighbours",
    "sklearn.svm": "support vectors",
    "sklearn.gaussian_process": "support vectors",
    "sklearn.tree": "tree",
    "sklearn.ensemble": "forest",
    "sklearn.neural_network": "neural network",
    "torch.nn": "neural network",
    "tensorflow": "neural network",
    "keras": "neural network",
    "xgboost": "boosting",
    "lightgbm": "boosting",
    "catboost": "boosting",
    "sklearn.dummy": "dummy",
}
_BOOSTING = ("Boost",)
_NO_MODELS = ("DMatrix", "Dataset", "Pool")
"""Data containers of boosting packages."""


def family(source: str) -> str:
    r"""Return the family of the last model that a program constructs.

    A model counts when its class is imported from a known package and called, so an unused import is no model. The
    last one counts because programs combine: a scaler, a first try, then the model that predicts.

    Returns:
        A family such as ``linear`` or ``boosting``; ``""`` where none is constructed or nothing parses.

    Example:
        >>> family("from sklearn.ensemble import RandomForestClassifier as R\nR(10).fit(x, y)")
        'forest'
        >>> family("import pandas as pd\npd.read_csv('input/train.csv')")
        ''
    """
    try:
        with warnings.catch_warnings():
            # A program's own odd escapes are no business of whoever reads it.
            warnings.simplefilter("ignore")
            tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = _imported(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    families = [found for call in calls if (found := _family(_dotted(call.func), names))]
    return families[-1] if families else ""


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return local name -> dotted name of everything imported anywhere in the program."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for such an expression, "" for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _family(called: str, names: dict[str, str]) -> str:
    """Return the family that a call constructs, "" where it constructs no model."""
    first, _, rest = called.partition(".")
    if first not in names:
        return ""
    full = names[first] + (f".{rest}" if rest else "")
    name = full.rpartition(".")[2]
    if not name[:1].isupper() or name in _NO_MODELS:
        return ""
    for module, name_of_family in _MODULES.items():
        if full.startswith(f"{module}."):
            return "boosting" if any(word in name for word in _BOOSTING) else name_of_family
    return ""
