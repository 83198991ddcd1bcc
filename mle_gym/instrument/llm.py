"""The paper's instrumenter: a frozen language model inserts print lines, which become calls of a hook."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from mle_gym.instrument.base import MILESTONES, Instrumenter
from mle_gym.instrument.context import parse_program, program_context
from mle_gym.instrument.rewrite_cache import RewriteCache
from mle_gym.instrument.rewriters import make_rewriter
from mle_gym.instrument.verified_rewrite import MARKERS, verified_rewrite

if TYPE_CHECKING:
    from mle_gym.sandbox.base import Program
    from mle_gym.tasks.task import TaskData

__all__ = ["MARKERS", "LLMInstrumenter"]

_PROMPT = """Insert print statements into the Python program, each right after the code that it names:
{prints}
Leave a print out where the program has no such code. Change nothing else: same lines, same order, same comments.
Answer with the whole program in one {fence}python block.

{fence}python
{source}
{fence}
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
    like training earns that credit without training. Use ``probe`` unless the paper's arm is what you study. So
    ``info["instrumenter"]`` is ``llm:forgeable``, and ``llm:forgeable:original`` where the original ran.

    Args:
        generate: Text -> text, the frozen model; called once for each different program, possibly from many threads.
        backend: Instead of ``generate``: ``transformers``, ``openai``, another name in the entry-point group
            ``mle_gym.rewriters``, or ``package.module:Class``. By default ``openai`` where a ``base_url`` is among the
            options, else ``transformers``.
        cache_dir: Folder that keeps the model's answers by program hash; by default ``rewrites`` in the data folder,
            and none for ``generate``, which has no name to keep its answers apart from another model's. "" is none.
        cache_size: Programs whose result is kept in memory.
        options: The backend's: ``model``, ``base_url``, ...

    Raises:
        ValueError: No model is given, or it cannot be had; one sentence says why.
    """

    name: ClassVar[str] = "llm"

    def __init__(
        self,
        generate: Callable[[str], str] | None = None,
        *,
        backend: str = "",
        cache_dir: str | None = None,
        cache_size: int = 4096,
        **options: object,
    ) -> None:
        if generate is None and not (backend or options):
            raise ValueError(
                "instrumenter='llm' needs a model: instrumenter_options={'model': NAME} for one of transformers, "
                "{'base_url': URL, 'model': NAME} for an OpenAI-compatible server, or LLMInstrumenter(generate=...)."
            )
        if generate is not None and (backend or options):
            raise ValueError("LLMInstrumenter takes generate= or a backend with its options, not both.")
        if generate is None:
            generate = make_rewriter(backend or ("openai" if "base_url" in options else "transformers"), **options)
        if not callable(generate):
            raise ValueError("LLMInstrumenter needs generate=, a function from the prompt's text to the answer's text.")
        self._generate = generate
        self._identity = str(getattr(generate, "identity", ""))
        self._disk = RewriteCache.open(cache_dir, self._identity)
        self._cache_size = cache_size
        self._cache: OrderedDict[str, str | None] = OrderedDict()
        self._lock = threading.Lock()
        self._function = f"_milestone_{secrets.token_hex(8)}"
        self.accepted = 0
        """Different programs whose rewrite was taken."""
        self.rejected = 0
        """Different programs that run as they are: the rewrite changed more than prints, or was no program."""

    def instrument(self, source: str, data: TaskData) -> Program:
        """Return the rewritten program, or the original where the model's answer cannot be trusted.

        Raises:
            InstrumenterFailed: The model's server cannot be reached.
        """
        from mle_gym.sandbox.base import Program

        context = program_context(source, data)
        rewritten = self._rewrite(source)
        if rewritten is None:
            return Program(source=source, context=context)
        context |= {"function": self._function, "milestones": list(MILESTONES)}
        return Program(source=rewritten, hooks=_HOOKS, context=context)

    def label(self, program: Program | None = None) -> str:
        """Return ``llm:forgeable``, or ``llm:forgeable:original`` for a program that was not rewritten."""
        return "llm:forgeable" if program is None or program.hooks else "llm:forgeable:original"

    def _rewrite(self, source: str) -> str | None:
        key = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        result = None
        if parse_program(source) is not None:
            answer = self._disk.get(key) if self._disk else None
            if answer is None:
                answer = self._generate(_prompt(source))
                if self._disk and answer:
                    self._disk.put(key, answer)
            # What the disk holds is checked like any other answer: others may have written there.
            result = verified_rewrite(source, answer, self._function)
        with self._lock:
            self.accepted += result is not None
            self.rejected += result is None
            self._cache[key] = result
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return result


def _prompt(source: str) -> str:
    prints = "\n".join(f'print("{text}")' for text in MARKERS.values())
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
    return _PROMPT.format(prints=prints, source=source, fence=fence)
