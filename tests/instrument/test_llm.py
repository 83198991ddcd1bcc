from __future__ import annotations

import ast
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_gym.instrument import MILESTONES, make_instrumenter
from mle_gym.instrument.llm import MARKERS, LLMInstrumenter

PROGRAM = '''"""A program."""
import numpy as np

def train(x):  # a comment
    """Fits."""
    if len(x):
        model = np.mean(x)
    else:
        model = 0.0
    return model

try:
    print(train([1, 2]))
except ValueError:
    pass
'''


def answer(text: str) -> str:
    return f"Here it is:\n```python\n{text}\n```\nDone."


def rewrite(text: str, data, source: str = PROGRAM):
    instrumenter = LLMInstrumenter(lambda prompt: answer(text))
    return instrumenter, instrumenter.instrument(source, data)


def test_prints_become_calls(data):
    text = PROGRAM.replace("import numpy as np", 'import numpy as np\nprint("imported packages")').replace(
        "        model = np.mean(x)", '        model = np.mean(x)\n        print("trained model")'
    )
    instrumenter, program = rewrite(text, data)
    assert (instrumenter.accepted, instrumenter.rejected) == (1, 0)
    function = program.context["function"]
    assert program.source.splitlines() == [
        line.replace('print("imported packages")', f"{function}(0)").replace('print("trained model")', f"{function}(3)")
        for line in text.splitlines()
    ]
    reported = []
    namespace: dict = {}
    exec(program.hooks, namespace)
    namespace["install"](lambda name, evidence: reported.append((name, evidence)), program.context)
    exec(program.source, {})
    assert reported == [("imported_packages", "interpreter"), ("trained_model", "interpreter")]


def test_prompt_holds_the_program_and_every_print(data):
    prompts = []
    LLMInstrumenter(lambda prompt: prompts.append(prompt) or "").instrument(PROGRAM, data)
    assert PROGRAM in prompts[0]
    assert [f'print("{text}")' in prompts[0] for text in MARKERS.values()] == [True] * 7
    assert tuple(MARKERS) == MILESTONES


CHANGED = {
    "unchanged": PROGRAM,
    "other_print": PROGRAM + 'print("hello")\n',
    "print_of_a_value": PROGRAM + 'print("trained model", 1)\n',
    "print_elsewhere": PROGRAM + 'print("trained model", file=None)\n',
    "changed_number": PROGRAM.replace("0.0", "1.0") + 'print("trained model")\n',
    "changed_type": PROGRAM.replace("0.0", "0") + 'print("trained model")\n',
    "removed_line": PROGRAM.replace("        model = 0.0\n", "        pass\n") + 'print("trained model")\n',
    "added_line": PROGRAM + 'x = 1\nprint("trained model")\n',
    "moved": PROGRAM.replace("import numpy as np\n", "") + 'import numpy as np\nprint("trained model")\n',
    "before_docstring": 'print("imported packages")\n' + PROGRAM,
    "before_inner_docstring": PROGRAM.replace('    """Fits."""', '    print("loaded data")\n    """Fits."""'),
    "no_program": "I cannot do that.",
    "broken": PROGRAM + 'print("trained model"',
    "empty": "",
}


@pytest.mark.parametrize("change", CHANGED)
def test_anything_but_added_prints_is_rejected(data, change):
    instrumenter, program = rewrite(CHANGED[change], data)
    assert (instrumenter.accepted, instrumenter.rejected) == (0, 1)
    assert program.source == PROGRAM
    assert program.hooks == ""


def test_future_imports_stay_first(data):
    source = "from __future__ import annotations\nx = 1\n"
    assert rewrite('print("loaded data")\n' + source, data, source)[1].source == source


def test_own_prints_stay_prints(data):
    source = 'print("loaded data")\nx = "é"; y = 2\n'
    text = 'print("loaded data")\nx = "é"; print("loaded data"); y = 2; print(\n    "trained model"\n)\n'
    program = rewrite(text, data, source)[1]
    name = program.context["function"]
    assert program.source == f'print("loaded data")\nx = "é"; {name}(1); y = 2; {name}(3)\n'


def test_each_program_is_asked_for_once(data):
    asked = []
    instrumenter = LLMInstrumenter(lambda prompt: asked.append(prompt) or PROGRAM, cache_size=2)
    for source in ("a = 1", "b = 1", "a = 1", "c = 1", "b = 1"):
        instrumenter.instrument(source, data)
    assert len(asked) == 4  # "b = 1" had made room


def test_threads_share_one_instrumenter(data):
    instrumenter = LLMInstrumenter(
        lambda prompt: answer(prompt.rpartition("```python\n")[2][:5] + '\nprint("loaded data")')
    )
    programs = {}

    def work(number: int) -> None:
        for i in range(20):
            programs[number, i] = instrumenter.instrument(f"x = {i % 10}", data)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(program.source.startswith(f"x = {i % 10}\n_milestone_") for (_, i), program in programs.items())


def test_source_that_is_no_program_is_returned(data):
    for source in ("x = (", "x = 1\0", "(" * 5000 + ")" * 5000, "\ud800"):
        assert rewrite('print("loaded data")', data, source)[1].source == source


def test_needs_a_model():
    with pytest.raises(ValueError, match="generate"):
        make_instrumenter("llm")
    with pytest.raises(ValueError, match="function from the prompt"):
        make_instrumenter("llm", generate="gpt")


STATEMENTS = st.sampled_from(["x = 1", "print('loaded data')", "print('trained model')", "y = [2]", "pass"])


@given(
    lines=st.lists(STATEMENTS, min_size=1, max_size=6),
    added=st.lists(st.tuples(st.integers(0, 6), st.sampled_from([*MARKERS]))),
)
def test_any_insertion_is_found(data, lines, added):
    """Taking the calls out of the result gives the original, and their number is the number of prints put in."""
    text = list(lines)
    for position, milestone in added:
        text.insert(min(position, len(text)), f"print({MARKERS[milestone]!r})")
    program = rewrite("\n".join(text), data, "\n".join(lines))[1]
    if not added:
        assert program.hooks == ""
        return
    name = program.context["function"]
    left = [line for line in program.source.splitlines() if not line.startswith(name)]
    assert left == lines
    assert len(program.source.splitlines()) - len(left) == len(added)
    ast.parse(program.source)
