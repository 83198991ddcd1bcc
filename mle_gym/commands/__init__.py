"""The sub-commands of ``mle-gym``; each module is imported only when its command is called."""

from mle_gym.commands.base import UserError, console, parse, resolve_id, write_json

__all__ = ["UserError", "console", "parse", "resolve_id", "write_json"]
