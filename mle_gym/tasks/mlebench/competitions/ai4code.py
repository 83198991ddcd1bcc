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
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.text import as_text

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
