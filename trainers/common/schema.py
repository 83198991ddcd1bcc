"""Dataclasses from nested tables and back, with errors that name the key."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["build", "to_toml"]

T = TypeVar("T")


def build(kind: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Make a dataclass of a nested table.

    Args:
        kind: A dataclass.
        values: Keys are its fields; missing ones keep their defaults.
        where: Dotted path of the table, for error messages.

    Raises:
        ValueError: A key is unknown (the nearest known one is named) or a value is not one of the choices.
        TypeError: A value has the wrong type.
    """
    hints = get_type_hints(kind)
    names = [item.name for item in dataclasses.fields(kind)]  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else key
        if key not in names:
            close = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(names) or 'none'}."
            raise ValueError(f"Unknown key {path!r}; {hint}")
        arguments[key] = _convert(hints[key], value, path)
    return kind(**arguments)


def to_toml(value: Any) -> str:
    """Write a dataclass of plain values as TOML; keys that are None are left out, as TOML has no null."""
    return "\n".join(_table(value, "")).strip() + "\n"


def _convert(kind: Any, value: Any, path: str) -> Any:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        rest = [option for option in arguments if option is not type(None)]
        if value is None or value == "none":
            return None
        return _convert(rest[0], value, path)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{path} must be one of {', '.join(map(repr, arguments))}, not {value!r}.")
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise TypeError(f"{path} must be a section (a table), not {value!r}.")
        return build(kind, value, path)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            value = [value]
        return tuple(_convert(arguments[0], item, path) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError(f"{path} must be a section (a table), not {value!r}.")
        return dict(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # bool is a subclass of int, and `updates = true` is a mistake.
    if not isinstance(kind, type) or not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
        raise TypeError(f"{path} must be {names.get(kind, kind)}, not {value!r}.")
    return value


def _table(value: Any, where: str) -> list[str]:
    items = (
        {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        if dataclasses.is_dataclass(value)
        else dict(value)
    )
    plain = {k: v for k, v in items.items() if v is not None and not _is_table(v)}
    lines = [f"\n[{where}]"] if where and plain else []
    lines += [f"{_key(key)} = {_scalar(item)}" for key, item in plain.items()]
    for key, item in items.items():
        if _is_table(item):
            lines += _table(item, f"{where}.{_key(key)}" if where else _key(key))
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_scalar(item) for item in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"{value!r} cannot be written as TOML.")
