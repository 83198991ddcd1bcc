from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mle_gym.response import Response

line = st.text(st.characters(exclude_characters="`~\r\n", exclude_categories=["Cs"]), max_size=30)
body = st.lists(line, min_size=1, max_size=6).map("\n".join).filter(str.strip)


@given(
    plan=body,
    program=body,
    tag=st.sampled_from(["python", "py", "Python", "python3", ""]),
    mark=st.sampled_from(["```", "````", "~~~"]),
)
def test_what_was_put_in_comes_out(plan: str, program: str, tag: str, mark: str) -> None:
    response = Response.parse(f"{plan}\n{mark}{tag}\n{program}\n{mark}\nThat is all.")
    assert response.plan == plan.strip()
    assert response.program == program + "\n"


@given(st.text())
@example("```")
@example("```python")
@example("```python\n")
@example("~~~\n```python\nx\n```")
@example("\0```python\n\0")
def test_never_raises_and_invents_nothing(text: str) -> None:
    response = Response.parse(text)
    clean = text.replace("\r\n", "\n").replace("\r", "\n")
    assert response.plan in clean
    assert response.program.removesuffix("\n") in clean
    assert response.program == "" or (response.program.strip() and response.program.endswith("\n"))


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("no code at all", ""),
        ("", ""),
        ("``` inline ``` code\n", ""),
        ("```python\n   \n\n```", ""),
        ("```bash\npip install x\n```\n```python\nx = 1\n```", "x = 1\n"),
        ("```\nfirst\n```\n```python\nsecond\n```", "second\n"),
        ("```python\nfirst\n```\n```python\nsecond\n```", "first\n"),
        ("```json\n{}\n```", ""),
        ("```python\ncut at the token li", "cut at the token li\n"),
        ("```python\r\nx = 1\r\ny = 2\r\n```", "x = 1\ny = 2\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("  ```python\nx = 1\n  ```", "x = 1\n"),
        ('```python title="a.py"\nx = 1\n```', "x = 1\n"),
    ],
)
def test_which_block_is_the_program(text: str, program: str) -> None:
    assert Response.parse(text).program == program


def test_plan_is_what_precedes_the_first_block() -> None:
    assert Response.parse("  One.\nTwo.\n\n```bash\nls\n```\nThree.\n```python\nx\n```").plan == "One.\nTwo."
    assert Response.parse("```python\nx\n```\nAfterwards.").plan == ""


def test_time_is_linear_in_the_number_of_fences() -> None:
    response = Response.parse("```a\n```\n" * 20_000 + "```python\nx = 1\n```")
    assert response.program == "x = 1\n"
