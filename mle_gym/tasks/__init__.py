"""Tasks: what to solve, the registry, data folders."""

from mle_gym.tasks.registry import get_task, list_tasks, register_task
from mle_gym.tasks.task import MissingDependency, Task, TaskData, TaskUnavailable

__all__ = ["MissingDependency", "Task", "TaskData", "TaskUnavailable", "get_task", "list_tasks", "register_task"]
