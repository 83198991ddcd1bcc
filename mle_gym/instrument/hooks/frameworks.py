"""Models outside scikit-learn: statsmodels, native gradient boosting, PyTorch."""

from __future__ import annotations

import functools
import sys

from mle_gym.instrument.hooks.core import Call, Probe, is_function, rows, wrap
from mle_gym.instrument.hooks.estimators import Estimators, is_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["Boosting", "Statsmodels", "Torch"]


class Statsmodels:
    """Models and results of statsmodels, seen when they are constructed."""

    def __init__(self, estimators: Estimators) -> None:
        self.estimators = estimators

    def patch(self, module: ModuleType) -> None:
        """Patch ``statsmodels.base.model``."""
        for root in (module.Model, module.Results):
            root.__init__ = wrap(Probe(self.estimators.recorder.safely(self.after_construct)), root.__init__)

    def after_construct(self, call: Call) -> None:
        """Look at a new model or new results."""
        cls = type(call.args[0])
        self.estimators.see(cls)
        if is_model(cls) and hasattr(call.args[0], "endog"):
            self.estimators.recorder.reach("defined_model")


class Boosting:
    """The native interfaces of LightGBM, XGBoost and CatBoost; their estimators are seen as scikit-learn's."""

    def __init__(self, estimators: Estimators) -> None:
        self.estimators = estimators
        self.recorder = estimators.recorder

    def patch(self, module: ModuleType) -> None:
        """Patch the library's top-level package."""
        for name in ("train", "cv"):
            original: Any = getattr(module, name, None)
            if is_function(original):
                wrapper = wrap(Probe(self.recorder.safely(getattr(self, "after_" + name))), original)
                for home in {module, sys.modules.get(original.__module__, module)}:
                    setattr(home, name, wrapper)
        for name in ("Booster", "CatBoost", "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker"):
            cls = getattr(module, name, None)
            if isinstance(cls, type):
                self.estimators.see(cls)

    def after_train(self, call: Call) -> None:
        """Look at a completed training of a native booster."""
        self.recorder.reach("defined_model")
        if self.estimators.evidence.fitted(rows(call.get(1, "train_set", "dtrain", "pool"))):
            self.recorder.family(type(call.result).__module__.partition(".")[0] + ".train")
            if any(call.kwargs.get(name) for name in ("valid_sets", "evals", "eval_set")):
                self.recorder.reach("evaluated")

    def after_cv(self, call: Call) -> None:
        """Look at a completed cross-validation."""
        self.recorder.reach("evaluated")


class Torch:
    """Parameters, forward and backward passes and optimizer steps of PyTorch.

    A model is trained when an optimizer stepped after a backward pass and the forward passes of a training module have
    seen enough rows; it predicts when it is called in ``eval`` mode or without gradients; a loss module called without
    gradients evaluates.
    """

    def __init__(self, estimators: Estimators) -> None:
        self.evidence = estimators.evidence
        self.recorder = estimators.recorder
        self.torch: Any = None
        self.rows = 0
        self.inside = False
        self.backward = False

    def patch(self, module: ModuleType) -> None:
        """Patch ``torch``."""
        torch: Any = module
        self.torch = torch
        safely, root = self.recorder.safely, torch.nn.Module
        root.register_parameter = wrap(Probe(safely(self.after_parameter)), root.register_parameter)
        torch.autograd.backward = wrap(Probe(safely(self.after_backward)), torch.autograd.backward)
        # ``torch.optim`` deletes the name of this module.
        optimizers: Any = sys.modules["torch.optim.optimizer"]
        optimizers.register_optimizer_step_post_hook(safely(self.after_step))
        forward, after, state = root.__call__, safely(self.after_forward), self

        def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            if state.inside:
                return forward(self, *args, **kwargs)
            state.inside = True
            try:
                result = forward(self, *args, **kwargs)
            finally:
                state.inside = False
            after(self, args, kwargs)
            return result

        root.__call__ = functools.update_wrapper(__call__, forward)

    def after_parameter(self, call: Call) -> None:
        """Look at a module that got a parameter."""
        if call.get(2, "param") is not None:
            self.recorder.reach("defined_model")

    def after_backward(self, call: Call) -> None:
        """Note a backward pass."""
        self.backward = True

    def after_step(self, *_: Any) -> None:
        """Look at an optimizer's step."""
        if self.backward and self.evidence.fitted(self.rows):
            self.recorder.family("torch.nn.Module")

    def after_forward(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at an outermost forward pass."""
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, self.torch.Tensor)]
        count = rows(tensors[0]) if tensors else None
        gradient = self.torch.is_grad_enabled()
        if isinstance(module, self.torch.nn.modules.loss._Loss):
            if not gradient and len(tensors) == 2 and "trained_model" in self.recorder.reached:
                self.evidence.evaluated(tensors[1], tensors[0])
        elif gradient and module.training:
            self.rows += count or 0
        else:
            self.evidence.predicted(count)
