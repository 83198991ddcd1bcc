"""Estimators in the style of scikit-learn, and its metrics."""

from __future__ import annotations

import sys
import threading

from mle_gym.instrument.hooks.core import Call, Probe, Recorder, is_function, rows, wrap
from mle_gym.instrument.hooks.evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

__all__ = ["Estimators"]

METHODS = {
    "fit": "fit",
    "partial_fit": "partial_fit",
    "fit_predict": "fit",
    "predict": "predict",
    "predict_proba": "predict",
    "predict_log_proba": "predict",
    "decision_function": "predict",
    "forecast": "predict",
    "score": "score",
}
"""Method -> what its completion is evidence of."""

PREDICTS = ("predict", "predict_proba", "decision_function", "fit_predict")
"""A class with one of these is a model; scalers, encoders and selectors have none."""

VALIDATED = frozenset(("best_score_", "cv_results_", "scores_", "oob_score_", "mse_path_"))
"""A model has one of these after a fit that scored it on held-out rows."""

CROSS_VALIDATION = frozenset(
    ("cross_val_score", "cross_validate", "learning_curve", "validation_curve", "permutation_test_score")
)


class MethodProbe(Probe):
    """A probe on a method that also keeps the stack of estimators at work."""

    def __init__(self, after: Callable[[Call], object], stack: Callable[[], list[Any]]) -> None:
        super().__init__(after)
        self.stack = stack

    def __call__(self, original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        stack = self.stack()
        stack.append(args[0] if args else None)
        try:
            result = original(*args, **kwargs)
        finally:
            stack.pop()
        self.after(Call(result, sys._getframe(2), args, kwargs))
        return result


class Estimators:
    """Sees estimators being constructed, fitted, scored and asked for predictions.

    A class is wrapped when its first instance gets its first attribute, or when the program defines it; ``fit`` of a
    transformer is no model, and neither is what a transformer fits inside.
    """

    def __init__(self, recorder: Recorder, evidence: Evidence) -> None:
        self.recorder = recorder
        self.evidence = evidence
        self.local = threading.local()
        self.wrapped: set[type] = set()
        self.setters: dict[type, Callable[..., None]] = {}
        self.partial_rows = 0

    def stack(self) -> list[Any]:
        """Estimators whose methods are running in this thread, outermost first."""
        stack: list[Any] | None = getattr(self.local, "stack", None)
        if stack is None:
            stack = self.local.stack = []
        return stack

    def see(self, cls: type) -> None:
        """Wrap the methods of a class and of its bases, each once."""
        for base in cls.__mro__[:-1]:
            if base in self.wrapped:
                continue
            self.wrapped.add(base)
            for name, kind in METHODS.items():
                member: Any = base.__dict__.get(name)
                if member is None:
                    continue
                probe = MethodProbe(self.recorder.safely(getattr(self, "after_" + kind)), self.stack)
                if is_function(member):
                    setattr(base, name, wrap(probe, member))
                elif is_function(getattr(member, "fn", None)):  # scikit-learn's ``available_if``
                    member.fn = wrap(probe, member.fn)

    def construct(self, cls: type, root: type) -> Callable[..., None]:
        """Look at the first instance of a class; return what sets its attributes after ``root``."""
        later = cls.__mro__[cls.__mro__.index(root) + 1 :]
        setter: Callable[..., None] = next(c.__dict__["__setattr__"] for c in later if "__setattr__" in c.__dict__)
        self.setters[cls] = setter
        self.see(cls)
        stack = self.stack()
        if is_model(cls) and (not stack or is_model(type(final_step(stack[0])))):
            self.recorder.reach("defined_model")
        return setter

    def after_fit(self, call: Call, count: int | None = None) -> None:
        """Look at a completed fit."""
        stack, estimator = self.stack(), call.args[0]
        if not is_model(type(final_step(stack[0] if stack else estimator))):
            return
        self.recorder.reach("defined_model")
        if count is None:
            data = getattr(estimator, "endog", None)  # statsmodels is given its data when constructed
            count = rows(call.get(1, "X") if data is None else data)
        if not self.evidence.fitted(count) or stack:
            return
        if self.recorder.is_program(call.frame):
            self.recorder.family(type(final_step(estimator)).__name__)
        if call.get(99, "eval_set", "eval_X") is not None or not VALIDATED.isdisjoint(
            getattr(estimator, "__dict__", ())
        ):
            self.recorder.reach("evaluated")

    def after_partial_fit(self, call: Call) -> None:
        """Add up the rows of fits in portions."""
        self.partial_rows += rows(call.get(1, "X")) or 0
        self.after_fit(call, self.partial_rows)

    def after_predict(self, call: Call) -> None:
        """Look at a prediction that the program asked for."""
        if not self.stack() and self.recorder.is_program(call.frame):
            self.evidence.predicted(rows(call.result))

    def after_score(self, call: Call) -> None:
        """Look at a score that the program asked for."""
        if not self.stack():
            self.evidence.evaluated(call.get(2, "y"))

    def after_validated(self, frame: FrameType) -> None:
        """Look at a completed function of scikit-learn, from the frame of its ``validate_params``."""
        if self.stack():
            return  # A metric inside a fit is the library's.
        names = frame.f_locals
        function = names.get("func")
        module = getattr(function, "__module__", None) or ""
        call = Call(None, frame, names.get("args", ()), names.get("kwargs", {}))
        if module.startswith("sklearn.metrics.") and not module.endswith((".pairwise", "._unsupervised")):
            self.evidence.evaluated(call.get(0, "y_true"), call.get(1, "y_pred", "y_score", "y_proba"))
        elif module.startswith("sklearn.model_selection.") and getattr(function, "__name__", "") in CROSS_VALIDATION:
            self.recorder.reach("evaluated")
            if self.recorder.is_program(frame.f_back):
                self.recorder.family(type(final_step(call.get(0, "estimator"))).__name__)

    def patch_base(self, module: ModuleType) -> None:
        """See instances and sub-classes of ``sklearn.base.BaseEstimator``."""
        root: Any = module.BaseEstimator
        setters = self.setters
        construct, see = self.recorder.safely(self.construct), self.recorder.safely(self.see)

        def __setattr__(self: Any, name: str, value: Any) -> None:
            setter = setters.get(type(self)) or construct(type(self), root) or object.__setattr__
            setter(self, name, value)

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
            super(root, cls).__init_subclass__(**kwargs)
            if not cls.__module__.startswith("sklearn."):
                see(cls)

        for name in ("__setattr__", "__init_subclass__"):
            if name in root.__dict__:
                raise TypeError(f"{name} is taken")  # Ours would skip it; better no evidence than another behaviour.
        root.__setattr__ = __setattr__
        root.__init_subclass__ = classmethod(__init_subclass__)

    def patch_validation(self, module: ModuleType) -> None:
        """See metrics in ``sklearn.utils._param_validation``, where all pass, so that none has to be replaced."""
        namespace: Any = module
        original = namespace.config_context
        after = self.recorder.safely(self.after_validated)

        class Context:
            def __init__(self, **options: Any) -> None:
                self.inner = original(**options)

            def __enter__(self) -> None:
                self.inner.__enter__()

            def __exit__(self, kind: Any, value: Any, trace: Any) -> Any:
                result = self.inner.__exit__(kind, value, trace)
                if kind is None:
                    after(sys._getframe(1))
                return result

        namespace.config_context = Context


def is_model(cls: type) -> bool:
    """Whether instances predict; a pipeline counts by its last step."""
    return cls.__name__ != "Pipeline" and any(hasattr(cls, name) for name in PREDICTS)


def final_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, however deep; anything else is returned as it is."""
    while type(estimator).__name__ == "Pipeline" and getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return estimator
