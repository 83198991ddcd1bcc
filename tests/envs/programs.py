"""Programs that every task accepts or that fail in a known way, as answers."""

from __future__ import annotations

COPY = 'import os, shutil\nshutil.copyfile(os.environ["MLE_SAMPLE_SUBMISSION"], "submission.csv")\n'


def answer(program: str, plan: str = "I do what the program says.") -> str:
    return f"{plan}\n\n```python\n{program}\n```\n"


def sleeper(seconds: float) -> str:
    return answer(f"import time\ntime.sleep({seconds})\n{COPY}")
