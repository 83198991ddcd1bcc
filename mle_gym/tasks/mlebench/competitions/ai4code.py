"""Google AI4Code: in which order did the cells of a notebook stand?"""

from __future__ import annotations

import json
from bisect import bisect
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import require_columns, say
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, words
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text

NOTES = ("Now we look at", "The table", "Let us clean", "A plot of", "We prepare")
DOINGS = ("dropna", "groupby", "merge", "plot", "describe", "fillna")

TEST_NOTEBOOKS = 20_000


def _inversions(ranks: list[int]) -> int:
    """Count pairs that stand the wrong way round, by insertion: notebooks are short."""
    before: list[int] = []
    count = 0
    for rank in ranks:
        at = bisect(before, rank)
        count += len(before) - at
        before.insert(at, rank)
    return count


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Kendall's tau over all pairs of cells of all notebooks together: 1 - 4 * inversions / sum of n (n - 1)."""
    require_columns(submission, "id", "cell_order")
    found, expected = same_order(submission, answers, "id")
    guesses, truth = as_text(submission["cell_order"]), as_text(answers["cell_order"])
    inversions = most = 0
    wrong: list[tuple[int, str]] = []
    for row, position in zip(found.tolist(), expected.tolist(), strict=True):
        guess, cells = guesses[row].split(), truth[position].split()
        place = {cell: rank for rank, cell in enumerate(guess)}
        if len(guess) != len(cells):
            wrong.append((row, f"{len(guess)} cell(s); expected the {len(cells)} of this notebook, each once"))
        elif missing := next((cell for cell in cells if cell not in place), None):
            wrong.append((row, f"{say(missing)} is missing; expected every cell of this notebook once"))
        else:
            inversions += _inversions([place[cell] for cell in cells])
            most += len(cells) * (len(cells) - 1)
    if wrong:
        row, problem = min(wrong)
        raise InvalidSubmission(f"Column 'cell_order', row {row + 1}: {problem}.")
    return 1 - 4 * inversions / most


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20,000 notebooks, whole families of forks at a time; 15 % where there are not more."""
    family = read_csv(raw / "train_ancestors.csv").sample(frac=1, random_state=0)
    room = TEST_NOTEBOOKS if len(family) > TEST_NOTEBOOKS else round(0.15 * len(family))
    held_out: set[str] = set()
    for _, forks in family.groupby("ancestor_id", sort=False)["id"]:
        if len(held_out) + len(forks) <= room:
            held_out.update(forks)
    for notebook in family["id"]:
        place = public / ("test" if notebook in held_out else "train")
        copy_files([(raw / "train" / f"{notebook}.json", place / f"{notebook}.json")])
    orders = read_csv(raw / "train_orders.csv")
    chosen = orders["id"].isin(held_out)
    write_csv(family[~family["id"].isin(held_out)], public / "train_ancestors.csv")
    write_csv(orders[~chosen], public / "train_orders.csv")
    write_csv(orders[chosen], private / "test_orders.csv")
    test = orders.loc[chosen, "id"]
    cells = [" ".join(json.loads((public / "test" / f"{name}.json").read_bytes())["cell_type"]) for name in test]
    write_csv(pd.DataFrame({"id": test, "cell_order": cells}), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Notebooks about made-up tables; a note above a code cell mostly names what the cell works on."""
    (raw / "train").mkdir()
    vocabulary = words(rng, 400)
    orders: list[tuple[str, str]] = []
    family: list[tuple[str, str, str | None]] = []
    ancestors = [hex_id(rng, 8) for _ in range({"tiny": 150, "small": 1200}[size])]
    for _ in range({"tiny": 200, "small": 1600}[size]):
        notebook = hex_id(rng, 14)
        order, kinds, sources = [], {}, {}
        names = rng.choice(vocabulary, size=rng.integers(4, 12), replace=False).tolist()
        for at, name in enumerate(names):
            if rng.random() < 0.6:
                cell = hex_id(rng, 8)
                word = name if rng.random() < 0.85 else str(rng.choice(vocabulary))
                order.append(cell)
                kinds[cell] = "markdown"
                sources[cell] = f"{'#' * int(rng.integers(0, 3))} {rng.choice(NOTES)} {word}".strip()
            for line in range(int(rng.integers(1, 3))):
                cell = hex_id(rng, 8)
                order.append(cell)
                kinds[cell] = "code"
                doing = str(rng.choice(DOINGS if at or line else ["read_csv"]))
                sources[cell] = f"{name} = {names[max(at - 1, 0)]}.{doing}()\n{name}.head()"
        notes = [cell for cell in order if kinds[cell] == "markdown"]
        shown = [cell for cell in order if kinds[cell] == "code"] + rng.permutation(notes).tolist()
        content = {"cell_type": {c: kinds[c] for c in shown}, "source": {c: sources[c] for c in shown}}
        (raw / "train" / f"{notebook}.json").write_text(json.dumps(content), encoding="utf-8")
        orders.append((notebook, " ".join(order)))
        ancestor = str(rng.choice(ancestors))
        relatives = [other for other, known, _ in family if known == ancestor]
        family.append((notebook, ancestor, str(rng.choice(relatives)) if relatives else None))
    write_csv(pd.DataFrame(orders, columns=["id", "cell_order"]), raw / "train_orders.csv")
    write_csv(pd.DataFrame(family, columns=["id", "ancestor_id", "parent_id"]), raw / "train_ancestors.csv")
