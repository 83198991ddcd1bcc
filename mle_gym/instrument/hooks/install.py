"""Puts every hook in place."""

from __future__ import annotations

import atexit
import sys

from mle_gym.instrument.hooks.core import Recorder
from mle_gym.instrument.hooks.estimators import Estimators
from mle_gym.instrument.hooks.events import Files, Imports
from mle_gym.instrument.hooks.evidence import Evidence
from mle_gym.instrument.hooks.frameworks import Boosting, Statsmodels, Torch
from mle_gym.instrument.hooks.tracebacks import hide_from_excepthook, hide_from_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["install"]


class Finder:
    """Runs a function right after a watched module was imported."""

    def __init__(self, watched: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.watched = watched

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec that the other finders give, its loader prepared to call the function."""
        if name not in self.watched:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec: Any = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        loader: Any = getattr(spec, "loader", None)
        patch = self.watched[name]
        if not hasattr(loader, "__dict__") or not hasattr(loader, "exec_module"):
            return spec

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # The method of the class shows again.
            loader.exec_module(module)
            patch(module)

        loader.exec_module = exec_module
        return spec


def install(report: Callable[[str, str], None], context: Mapping[str, Any]) -> None:
    """Install the hooks.

    Args:
        report: Sends a name and its evidence to the supervisor.
        context: ``input_dir``, ``train_files``, ``test_files`` (relative to it), ``submission`` and, where known,
            ``train_rows``, ``test_rows`` and ``last_import``.
    """
    recorder = Recorder(report)
    files = Files(recorder, context)
    estimators = Estimators(recorder, Evidence(recorder, files, context))
    boosting = Boosting(estimators).patch
    watched = {
        "sklearn.base": estimators.patch_base,
        "sklearn.utils._param_validation": estimators.patch_validation,
        "statsmodels.base.model": Statsmodels(estimators).patch,
        "lightgbm": boosting,
        "xgboost": boosting,
        "catboost": boosting,
        "torch": Torch(estimators).patch,
        "traceback": hide_from_traceback,
    }
    watched = {name: recorder.safely(patch) for name, patch in watched.items()}
    for name, patch in watched.items():
        if name in sys.modules:
            patch(sys.modules[name])
    sys.meta_path.insert(0, Finder(watched))  # type: ignore[arg-type]
    hide_from_excepthook()
    atexit.register(recorder.safely(files.check_submission))
    sys.addaudithook(recorder.safely(files.on_audit))
    Imports(recorder, context).install()
