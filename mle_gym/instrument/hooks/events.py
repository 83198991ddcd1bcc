"""Import statements and files: what the interpreter itself announces."""

from __future__ import annotations

import builtins
import os
import sys

from mle_gym.instrument.hooks.core import Call, Probe, Recorder, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["Files", "Imports"]

# fmt: off
PACKAGES = frozenset((
    "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn", "statsmodels", "joblib", "imblearn", "mlxtend",
    "category_encoders", "optuna", "lightgbm", "xgboost", "catboost", "torch", "torchvision", "torchaudio",
    "torch_geometric", "timm", "transformers", "sentence_transformers", "datasets", "lightning", "pytorch_lightning",
    "fastai", "tensorflow", "keras", "jax", "flax", "cv2", "PIL", "skimage", "librosa", "pydicom", "nltk", "spacy",
    "gensim", "networkx",
))
# fmt: on
"""Packages for data and machine learning."""


class Imports:
    """Evidence of ``imported_packages``: the last statement of the program's import block bound its names.

    At least one statement must have imported a package for data or machine learning; where the block imports none, the
    first such statement below it is enough.
    """

    def __init__(self, recorder: Recorder, context: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.last = tuple(context.get("last_import") or ())
        self.any = False
        self.plain = builtins.__import__
        self.hooked = wrap(Probe(recorder.safely(self.after_import)), self.plain)

    def install(self) -> None:
        """Watch import statements until the milestone is reached."""
        builtins.__import__ = self.hooked

    def after_import(self, call: Call) -> None:
        """Look at a statement whose module was imported."""
        if not self.recorder.is_program(call.frame):
            return
        name = call.get(0, "name")
        for attribute in call.get(3, "fromlist") or ():
            if attribute != "*" and not hasattr(call.result, attribute) and f"{name}.{attribute}" not in sys.modules:
                return  # The statement is about to fail.
        self.any = self.any or name.partition(".")[0] in PACKAGES
        line = call.frame.f_lineno
        if self.any and (not self.last or line > self.last[0] or self.last == (line, name)):
            self.recorder.reach("imported_packages")
            if builtins.__import__ is self.hooked:
                builtins.__import__ = self.plain


class Files:
    """Evidence of ``loaded_data`` (a train file was opened) and ``wrote_submission`` (it has content and was closed).

    Opening is seen by an audit hook, whatever the program does to ``open``. Readers in C++ or Rust that open files
    themselves (pyarrow, polars, OpenCV) are not seen.
    """

    def __init__(self, recorder: Recorder, context: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.folder = os.path.abspath(str(context.get("input_dir", "input")))
        self.train = self._paths(context.get("train_files") or ("",))
        self.test = self._paths(context.get("test_files") or ())
        self.submission = os.path.abspath(str(context.get("submission", "submission.csv")))
        self.test_opened = False
        self.written = False
        """The submission was opened for writing, or a file was moved there."""

    def _paths(self, names: Iterable[str]) -> frozenset[str]:
        paths = [os.path.join(self.folder, name) for name in names]
        return frozenset([*map(os.path.abspath, paths), *map(os.path.realpath, paths)])

    def test_unread(self) -> bool:
        """Whether the program's reading is seen, and it has not opened a test file."""
        return bool(self.test) and not self.test_opened and "loaded_data" in self.recorder.reached

    def on_audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Look at an audit event."""
        if event == "open":
            path, _, flags = args
            if isinstance(path, (str, bytes)) and isinstance(flags, int):
                self.on_open(os.path.abspath(os.fsdecode(path)), bool(flags & (os.O_WRONLY | os.O_RDWR)))
        elif event == "os.rename" and isinstance(args[1], (str, bytes)):
            self.written = self.written or os.path.abspath(os.fsdecode(args[1])) == self.submission

    def on_open(self, path: str, writing: bool) -> None:
        """Look at a file that is being opened."""
        if self.written:
            self.check_submission()
        if writing:
            self.written = self.written or path == self.submission
        elif not (self.test_opened and "loaded_data" in self.recorder.reached) and not path.endswith((".py", ".pyc")):
            if not self.test_opened and self._among(path, self.test):
                self.test_opened = True
            elif self._among(path, self.train) and os.access(path, os.R_OK):
                self.recorder.reach("loaded_data")

    @staticmethod
    def _among(path: str, known: frozenset[str]) -> bool:
        return any(
            form == one or form.startswith(one.rstrip(os.sep) + os.sep)
            for form in {path, os.path.realpath(path)}
            for one in known
        )

    def check_submission(self) -> None:
        """Look whether the submission has content and this process has closed it."""
        if "wrote_submission" in self.recorder.reached:
            return
        try:
            if os.stat(self.submission).st_size == 0:
                return
            numbers = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ()
        except OSError:
            return  # It is not there (yet).
        real = os.path.realpath(self.submission)
        for number in numbers:
            try:
                if os.readlink(f"/proc/self/fd/{number}") == real:
                    return
            except OSError:
                continue  # It was the listing's own descriptor.
        self.recorder.reach("wrote_submission")
