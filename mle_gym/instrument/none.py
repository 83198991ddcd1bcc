"""The instrumenter that instruments nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mle_gym.instrument.base import Instrumenter

if TYPE_CHECKING:
    from mle_gym.sandbox.base import Program
    from mle_gym.tasks.task import TaskData

__all__ = ["NoInstrumenter"]


class NoInstrumenter(Instrumenter):
    """Leaves the program alone: only what the sandbox sees from outside (the submission) is a milestone."""

    name: ClassVar[str] = "none"

    def instrument(self, source: str, data: TaskData) -> Program:
        """Return the bare program; its context names the files, which costs nothing."""
        from mle_gym.sandbox.base import Program

        task = data.task
        files = {"train_files": list(task.train_files), "test_files": list(task.test_files)}
        return Program(source=source, context={"input_dir": "input", "submission": "submission.csv", **files})
