"""The text space of actions and observations."""

from __future__ import annotations

from typing import Any

from gymnasium import Space

__all__ = ["MAX_LENGTH", "Utf8"]

MAX_LENGTH = 262_144
"""Characters of the longest action and observation. The same for every task, so that tasks mix in one vector
environment."""

_SAMPLES = {
    "text": (
        "Plain words.",
        "Two lines\nof text.",
        "Größe, naïve, 数据, данные",
        "columns: id, target",
        "",
    ),
    # Programs that any task accepts: each hands in the sample submission, by another way. `{salt}` makes draws differ.
    "program": (
        "I hand in the sample submission as it is. It sets the baseline.\n\n```python\nimport os\nimport shutil\n\n"
        'shutil.copyfile(os.environ["MLE_SAMPLE_SUBMISSION"], "submission.csv")\nprint("draw", {salt})\n```\n',
        "I read the sample submission as bytes and write them to the answer.\n\n```python\nimport os\n"
        "from pathlib import Path\n\nsource = Path(os.environ['MLE_SAMPLE_SUBMISSION'])\n"
        'Path("submission.csv").write_bytes(source.read_bytes())  # draw {salt}\n```\n',
        "I go through the sample submission row by row and copy each of them.\n\n```python\nimport csv\nimport os\n\n"
        'with open(os.environ["MLE_SAMPLE_SUBMISSION"], newline="") as source, '
        'open("submission.csv", "w", newline="") as target:\n'
        "    csv.writer(target).writerows(csv.reader(source))\nseed = {salt}\n```\n",
    ),
}


class Utf8(Space[str]):
    r"""All Unicode text of at most ``max_length`` characters that UTF-8 can encode (no lone surrogates).

    ``gymnasium.spaces.Text`` needs an alphabet, and one that holds all of Unicode takes seconds to build and megabytes
    to pickle; this space needs none.

    Args:
        max_length: Characters of the longest member.
        sampler: What :meth:`sample` draws: ``text``, or ``program`` for actions: short valid answers whose program
            copies the file named by ``$MLE_SAMPLE_SUBMISSION``, which every task accepts.
        seed: Seeds the space's own generator.

    Example:
        >>> space = Utf8(100)
        >>> "import os\n" in space, "é" in space, "\ud800" in space, "x" * 101 in space
        (True, True, False, False)
        >>> space
        Utf8(100)
    """

    def __init__(self, max_length: int = MAX_LENGTH, *, sampler: str = "text", seed: int | None = None) -> None:
        if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
            raise ValueError(f"Utf8 max_length is {max_length!r}; give a whole number of characters, at least 1.")
        if sampler not in _SAMPLES:
            raise ValueError(f"Utf8 sampler is {sampler!r}; choose one of {', '.join(sorted(_SAMPLES))}.")
        self.max_length = max_length
        self.sampler = sampler
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed-size array form."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a ``str`` that is short enough and that UTF-8 can encode."""
        if not isinstance(x, str) or len(x) > self.max_length:
            return False
        try:
            x.encode("utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Draw a member with the space's own generator; masks have no meaning here and are refused."""
        if mask is not None or probability is not None:
            raise ValueError("Utf8.sample takes neither mask nor probability: text has no finite set of choices.")
        variants = _SAMPLES[self.sampler]
        text = variants[int(self.np_random.integers(len(variants)))]
        return text.replace("{salt}", str(int(self.np_random.integers(1_000_000))))[: self.max_length]

    def to_jsonable(self, sample_n: Any) -> list[str]:
        """Members are JSON already."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """The inverse of :meth:`to_jsonable`."""
        return [str(x) for x in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Utf8) and (self.max_length, self.sampler) == (other.max_length, other.sampler)

    def __hash__(self) -> int:
        return hash((type(self), self.max_length, self.sampler))

    def __repr__(self) -> str:
        kind = "" if self.sampler == "text" else f", sampler={self.sampler!r}"
        return f"Utf8({self.max_length}{kind})"
