"""1st and Future - Player Contact Detection: which players of American football touch each other or the ground?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.grading.grade import InvalidSubmission
from mle_gym.tasks.mlebench.checks import numbers, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes
from mle_gym.tasks.mlebench.metrics import same_order
from mle_gym.tasks.mlebench.video import mp4_bytes

_VIEWS = ("All29", "Endzone", "Sideline")
_COLUMNS = {
    name: columns.split()
    for name, columns in {
        "labels": "contact_id game_play datetime step nfl_player_id_1 nfl_player_id_2 contact",
        "player_tracking": "nfl_player_id datetime step team position jersey_number x_position y_position speed "
        "distance direction orientation acceleration sa",
        "baseline_helmets": "view video frame nfl_player_id player_label left width top height",
        "video_metadata": "view start_time end_time snap_time",
    }.items()
}
"""Columns of Kaggle's tables; all but the first also begin with the play."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Matthews correlation of hard labels."""
    require_columns(submission, "contact_id", "contact")
    order, _ = same_order(submission, answers, "contact_id")
    labels = numbers(submission, "contact")
    odd = (np.trunc(labels) != labels) | (np.abs(labels) >= 2.0**63)
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise InvalidSubmission(
            f"Column 'contact', row {row + 1}: {labels[row]:g}; expected a whole number, 0 or 1, and no probability."
        )
    return _matthews(answers["contact"].to_numpy(), labels[order])


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the plays."""
    plays = read_csv(raw / "train_labels.csv", usecols=["game_play"])["game_play"].unique()
    _, test = split_rows(plays.tolist(), test_size=0.1)
    for name in ("labels", "baseline_helmets", "player_tracking", "video_metadata"):
        table = read_csv(raw / f"train_{name}.csv")
        is_test = table["game_play"].isin(test)
        write_csv(table[~is_test], public / f"train_{name}.csv")
        if name != "labels":
            write_csv(table[is_test], public / f"test_{name}.csv")
            continue
        write_csv(table[is_test], private / "test.csv")
        write_csv(table.loc[is_test, ["contact_id"]].assign(contact=0), public / "sample_submission.csv")
        for play in plays:
            folder = public / ("test" if play in test else "train")
            files = [f"{play}_{view}.mp4" for view in _VIEWS]
            copy_files((raw / "train" / file, folder / file) for file in files)


def _matthews(truth: NDArray[np.int64], found: NDArray[np.float64]) -> float:
    """Matthews correlation for any number of labels, from counts alone.

    scikit-learn's needs a table of labels x labels, which a file full of different numbers would blow up.
    """
    labels, codes = np.unique(np.concatenate([truth.astype(np.float64), found]), return_inverse=True)
    true_counts, counts = (
        np.bincount(part, minlength=len(labels)).astype(np.float64) for part in np.split(codes, [len(truth)])
    )
    rows = float(len(truth))
    right = float((truth == found).sum())
    spread = (rows**2 - counts @ counts) * (rows**2 - true_counts @ true_counts)
    return float((right * rows - true_counts @ counts) / np.sqrt(spread)) if spread else 0.0


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Players who run at each other; they touch when they are close, and the ground when they have been hit."""
    plays, players, steps = {"tiny": (40, 6, 12), "small": (90, 6, 14)}[size]
    tables: dict[str, list[pd.DataFrame]] = {}
    (raw / "train").mkdir()
    for number in range(plays):
        game, play = 58168 + number // 3, int(rng.integers(1, 4000))
        head = {"game_play": f"{game}_{play:06}", "game_key": game, "play_id": play}
        made = _play(raw / "train", rng, head, rng.choice(np.arange(38000, 56000), players, replace=False), steps)
        for name, table in made.items():
            tables.setdefault(name, []).append(table)
    for name, parts in tables.items():
        write_csv(pd.concat(parts), raw / f"train_{name}.csv")


def _play(
    folder: Path, rng: np.random.Generator, head: dict[str, Any], ids: NDArray[np.int64], steps: int
) -> dict[str, pd.DataFrame]:
    """Write the videos of one play, return its rows of each table."""
    count, second = len(ids), 0.1
    start = pd.Timestamp("2020-09-01", tz="UTC") + pd.Timedelta(minutes=int(rng.integers(0, 200_000)))
    clock = [(start + pd.Timedelta(seconds=second * step)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for step in range(steps)]
    place = np.stack([rng.uniform(40, 46, count), rng.uniform(20, 28, count)], axis=1)
    down = np.zeros(count, dtype=np.bool_)
    target = rng.permutation(count)
    labels, tracks, helmets = [], [], []
    short = [str(name) for name in ids]
    pictures: dict[str, list[bytes]] = {view: [] for view in _VIEWS}
    for step in range(steps):
        towards = place[target] - place
        pace = np.where(down, 0.05, rng.uniform(2, 6, count)) * second
        move = towards / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 0.3) * pace[:, None]
        place = place + move + rng.normal(0, 0.03, place.shape)
        apart = np.linalg.norm(place[:, None] - place[None, :], axis=2)
        touch = rng.random(apart.shape) < 1 / (1 + np.exp((apart - 1.1) * 6))
        hit = (np.triu(touch, 1) + np.triu(touch, 1).T).any(axis=1)
        down |= hit & (rng.random(count) < 0.12)
        for a in range(count):
            pairs = [(short[b], bool(touch[a, b])) for b in range(a + 1, count)]
            for other, contact in [*pairs, ("G", bool(down[a]))]:
                name = f"{head['game_play']}_{step}_{short[a]}_{other}"
                labels.append((name, head["game_play"], clock[step], step, short[a], other, int(contact)))
        speed = np.linalg.norm(move, axis=1) / second
        angle = np.degrees(np.arctan2(move[:, 0], move[:, 1])) % 360
        for at, name in enumerate(short):
            side = "home" if at % 2 else "away"
            seen = (place[at, 0], place[at, 1], speed[at], speed[at] * second, angle[at], (angle[at] + 90) % 360)
            push = rng.uniform(0, 4)
            numbers = [round(float(value), 2) for value in (*seen, push, push - rng.uniform(0, 1))]
            tracks.append((name, clock[step], step, side, "WR" if at % 3 else "CB", at + 10, *numbers))
        for view in _VIEWS:
            spots = ((place - (43, 24)) * (4, 2) if view != "Endzone" else (place - (43, 24))[:, ::-1] * (4, 2)) + (
                32,
                18,
            )
            field = np.full((36, 64, 3), (60.0, 130.0, 60.0)) + rng.normal(0, 6, (36, 64, 1))
            for at, (x, y) in enumerate(spots.round().astype(int).clip(0, (60, 32)).tolist()):
                field[y : y + (2 if down[at] else 4), x : x + 3] = (220, 220, 230) if at % 2 else (150, 30, 40)
                if view != "All29":
                    video = f"{head['game_play']}_{view}.mp4"
                    label = f"{'H' if at % 2 else 'V'}{at + 10:02}"
                    helmets.append((view, video, step + 1, short[at], label, x, 3, y, 3))
            pictures[view].append(image_bytes(field, "JPEG", quality=60))
    for view, shots in pictures.items():
        (folder / f"{head['game_play']}_{view}.mp4").write_bytes(mp4_bytes(shots, 64, 36, 1 / second))
    times = [(view, clock[0], clock[-1], clock[0]) for view in _VIEWS if view != "All29"]
    rows: dict[str, list[Any]] = {"player_tracking": tracks, "baseline_helmets": helmets, "video_metadata": times}
    others = {name: pd.DataFrame(part, columns=_COLUMNS[name]) for name, part in rows.items()}
    for table in others.values():
        for at, (name, value) in enumerate(head.items()):
            table.insert(at, name, value)
    return {"labels": pd.DataFrame(labels, columns=_COLUMNS["labels"]), **others}
