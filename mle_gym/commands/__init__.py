"""The sub-commands of ``mle-gym``; each module is imported only when its command is called."""

from mle_gym.commands.base import UserError, parse, write_json

__all__ = ["UserError", "parse", "write_json"]
