"""Accepts a rewritten program only if nothing but marker prints was added, and turns those into calls."""

from __future__ import annotations

import ast
import re

from mle_gym.instrument.base import MILESTONES
from mle_gym.instrument.context import compiles, parse_program

__all__ = ["MARKERS", "verified_rewrite"]

MARKERS: dict[str, str] = {
    "imported_packages": "imported packages",
    "loaded_data": "loaded data",
    "defined_model": "defined model",
    "trained_model": "trained model",
    "evaluated": "evaluated model",
    "predicted_test": "predicted test labels",
    "wrote_submission": "wrote submission",
}
"""Milestone -> the text that the model is asked to print after the matching code."""

_MOST_BLOCKS = 4
_FENCED = re.compile(r"^(`{3,})(?:python|py)?[ \t]*\n(.*?)(?:\n\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def verified_rewrite(original: str, answer: str, function: str) -> str | None:
    """Return the rewritten program with its added prints turned into calls of ``function``.

    Args:
        original: The program that the model was given.
        answer: What it said: the program in a fenced block (of several the last one that holds), or as it is.
        function: Name that the added prints are replaced by; called with the number of the milestone.

    Returns:
        None unless the syntax tree of the rewritten text equals the original's once at least one added statement
        ``print("MARKER")`` is taken out, and the result compiles.
    """
    blocks = [block for _, block in _FENCED.findall(answer)][-_MOST_BLOCKS:]
    # A text much longer than the program with its prints is no rewrite of it; parsing it would only take time.
    longest = 2 * len(original) + 4096
    for text in [*reversed(blocks), *([] if blocks else [answer])]:
        if len(text) <= longest and (result := _with_calls(original, text, function)) is not None:
            return result
    return None


def _with_calls(original: str, rewritten: str, function: str) -> str | None:
    before, after = parse_program(original), parse_program(rewritten)
    added: list[tuple[ast.Expr, str]] = []
    try:
        if before is None or after is None or not _same(before, after, added) or not added:
            return None
    except RecursionError:
        return None  # Nested too deeply to be compared.
    text = _replace(rewritten, added, function)
    # Parsing does not see everything: a print before "from __future__" fails only in the compiler.
    return text if compiles(text) else None


def _replace(text: str, added: list[tuple[ast.Expr, str]], function: str) -> str:
    # Offsets of the syntax tree count UTF-8 bytes.
    lines = [line.encode() for line in re.split(r"(?<=\n)", text.replace("\r\n", "\n").replace("\r", "\n"))]
    for statement, milestone in sorted(added, key=lambda item: (item[0].lineno, item[0].col_offset), reverse=True):
        first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
        call = f"{function}({MILESTONES.index(milestone)})".encode()
        tail = lines[last][statement.end_col_offset :]
        lines[first : last + 1] = [lines[first][: statement.col_offset] + call + tail]
    return b"".join(lines).decode()


def _marker(node: ast.AST) -> str | None:
    """The milestone whose print this statement is."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "print"
        and not node.value.keywords
        and len(node.value.args) == 1
        and isinstance(node.value.args[0], ast.Constant)
    ):
        value = node.value.args[0].value
        return next((name for name, text in MARKERS.items() if text == value), None)
    return None


def _same(before: object, after: object, added: list[tuple[ast.Expr, str]]) -> bool:
    """Whether two syntax trees are equal but for added prints, which are collected.

    In a list of statements each one of ``after`` is the next one of ``before`` or an added print. Taking the earliest
    match is right: if it could also be an added print, so could the later statement with the same content.
    """
    if isinstance(before, list) and isinstance(after, list):
        return _same_lists(before, after, added)
    if isinstance(before, ast.AST) and isinstance(after, ast.AST):
        if type(before) is not type(after):
            return False
        return all(_same(getattr(before, f, None), getattr(after, f, None), added) for f in before._fields)
    return type(before) is type(after) and before == after


def _same_lists(before: list[object], after: list[object], added: list[tuple[ast.Expr, str]]) -> bool:
    position = 0
    for item in after:
        trial: list[tuple[ast.Expr, str]] = []
        if position < len(before) and _same(before[position], item, trial):
            position += 1
            added += trial
            continue
        milestone = _marker(item) if isinstance(item, ast.AST) else None
        # A statement before a docstring would make it an ordinary string.
        if milestone is None or (position == 0 and before and _is_text(before[0])):
            return False
        assert isinstance(item, ast.Expr)
        added.append((item, milestone))
    return position == len(before)


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
