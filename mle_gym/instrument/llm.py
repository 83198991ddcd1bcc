"""The paper's instrumenter: a frozen language model inserts print lines, which become calls of a hook."""

from __future__ import annotations

import ast
import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from mle_gym.instrument.base import MILESTONES, Instrumenter
from mle_gym.instrument.context import compiles, parse_program, program_context

if TYPE_CHECKING:
    from mle_gym.sandbox.base import Program
    from mle_gym.tasks.task import TaskData

__all__ = ["MARKERS", "LLMInstrumenter"]

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

_PROMPT = """Insert print statements into the Python program, each right after the code that it names:
{prints}
Leave a print out where the program has no such code. Change nothing else: same lines, same order, same comments.
Answer with the whole program in one ```python block.

```python
{source}
```
"""

_HOOKS = '''"""Gives the program the function that the inserted lines call."""


def install(report, context):
    """Put the function among the builtins, under a name that the program cannot know beforehand."""
    import builtins

    names, seen = context["milestones"], set()

    def reached(number):
        if number not in seen:
            seen.add(number)
            report(names[number], "interpreter")

    setattr(builtins, context["function"], reached)
'''


class LLMInstrumenter(Instrumenter):
    """Environment instrumentation of arXiv 2509.01684: a frozen copy of the base model marks the milestones.

    The model sees the program and seven print lines and answers with the program that contains them. The answer is
    accepted only if its syntax tree equals the original's after the added prints are taken out; the added prints then
    become calls of a hook, so that text printed by the program earns nothing. Otherwise the original runs, with no
    milestone but the submission.

    **It can be forged.** A marker says where the model put it, not what happened there: a program whose code looks
    like training earns that credit without training. Use ``probe`` unless the paper's arm is what you study.

    Args:
        generate: Text -> text, the frozen model; called once for each different program, possibly from many threads.
        cache_size: Programs whose result is kept.
    """

    name: ClassVar[str] = "llm"

    def __init__(self, generate: Callable[[str], str], *, cache_size: int = 4096) -> None:
        if not callable(generate):
            raise ValueError("LLMInstrumenter needs generate=, a function from the prompt's text to the answer's text.")
        self._generate = generate
        self._cache_size = cache_size
        self._cache: OrderedDict[str, str | None] = OrderedDict()
        self._lock = threading.Lock()
        self._function = f"_milestone_{secrets.token_hex(8)}"
        self.accepted = 0
        """Answers that were taken."""
        self.rejected = 0
        """Answers that changed more than prints, or were no program."""

    def instrument(self, source: str, data: TaskData) -> Program:
        """Return the rewritten program, or the original where the model's answer cannot be trusted."""
        from mle_gym.sandbox.base import Program

        context = program_context(source, data)
        rewritten = self._rewrite(source)
        if rewritten is None:
            return Program(source=source, context=context)
        context |= {"function": self._function, "milestones": list(MILESTONES)}
        return Program(source=rewritten, hooks=_HOOKS, context=context)

    def _rewrite(self, source: str) -> str | None:
        key = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        prints = "\n".join(f'print("{text}")' for text in MARKERS.values())
        answer = self._generate(_PROMPT.format(prints=prints, source=source))
        result = _with_calls(source, _program_in(answer), self._function)
        with self._lock:
            self.accepted += result is not None
            self.rejected += result is None
            self._cache[key] = result
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return result


def _program_in(answer: str) -> str:
    """The last fenced block of an answer, or all of it."""
    blocks = re.findall(r"```(?:python|py)?[ \t]*\n(.*?)(?:\n```|\Z)", answer, re.DOTALL)
    return blocks[-1] if blocks else answer


def _with_calls(original: str, rewritten: str, function: str) -> str | None:
    """The rewritten text with its added prints turned into calls; None unless prints are all that was added."""
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
