"""iWildCam 2019: which animal did a camera trap see, at places that are not in the training data?"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes, write_zip
from mle_gym.tasks.mlebench.labels import id_pairs, integer_label, macro_f1, parsed_labels
from mle_gym.tasks.mlebench.pictures import class_looks, class_pixels, mixed_up, uuid_like


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean F1 over classes; ids repeat, and rows with the same id are paired in their order."""
    require_columns(submission, "Id", "Category")
    mine, theirs = id_pairs(submission, answers, "Id")
    predicted = parsed_labels(submission, "Category", integer_label, "the number of a category")
    return macro_f1(answers["Category"].to_numpy()[theirs], predicted[mine])


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 10 % of the places; the sample submission has an unnamed first column with row numbers."""
    table = read_csv(raw / "train.csv")
    _, places = split_rows(table["location"].unique(), test_size=0.1, random_state=8)
    held_out = table["location"].isin(places)
    train, test = table[~held_out], table[held_out]
    _pass_on(raw / "train_images.zip", public / "train_images.zip", train["file_name"])
    _pass_on(raw / "train_images.zip", public / "test_images.zip", test["file_name"])
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.drop(columns="category_id"), public / "test.csv")
    answers = test[["id", "category_id"]].set_axis(["Id", "Category"], axis="columns")
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Category=0), public / "sample_submission.csv", index=True)


def _pass_on(archive: Path, target: Path, names: pd.Series[str]) -> None:
    """Copy members of a zip file to another one."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w") as file:
        for name in names.unique():
            file.writestr(zipfile.ZipInfo(name), source.read(name))


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped photos, darker or brighter by place; the animal decides colour and stripes, and some photos show two."""
    places, mean = {"tiny": (20, 18), "small": (40, 75)}[size]
    classes = np.array([0, 1, 3, 4, 8, 11, 13, 16, 19, 22])
    rows = places * mean
    place = rng.permutation(np.repeat(np.arange(places), mean))
    animal = np.where(rng.random(rows) < 0.35, 0, (place + rng.integers(0, 6, rows)) % len(classes))
    looks, light = class_looks(rng, len(classes)), rng.normal(0, 15, places)
    shown = mixed_up(rng, animal, len(classes), 0.08)
    ids = [uuid_like(rng, "23d2-11e8-a6a3") for _ in range(rows)]
    when = pd.Timestamp("2011-05-01") + pd.to_timedelta(rng.integers(0, 10**8, rows), unit="s")
    table = pd.DataFrame(
        {
            "category_id": classes[animal],
            "date_captured": when.strftime("%Y-%m-%d %H:%M:%S"),
            "file_name": [f"{name}.jpg" for name in ids],
            "frame_num": rng.integers(1, 4, rows),
            "id": ids,
            "location": place,
            "rights_holder": "nobody",
            "seq_id": [uuid_like(rng, "5567-11e8-b3fe") for _ in range(rows)],
            "seq_num_frames": 3,
            "width": 32,
            "height": 32,
        }
    )
    pictures = {
        name: image_bytes(class_pixels(rng, looks[look], 32) + light[where], "JPEG", quality=80)
        for name, look, where in zip(table["file_name"], shown, place, strict=True)
    }
    write_zip(raw / "train_images.zip", pictures)
    two = table[table["category_id"] != 1].sample(frac=0.02, random_state=rng)
    write_csv(pd.concat([table, two.assign(category_id=1)]), raw / "train.csv")
    write_csv(table[["id"]].head(1).assign(id="x"), raw / "test.csv")
