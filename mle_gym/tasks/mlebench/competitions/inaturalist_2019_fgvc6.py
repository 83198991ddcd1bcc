"""iNaturalist 2019: which of 1,010 species does a photo show?"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.checks import aligned, require_columns
from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id
from mle_gym.tasks.mlebench.labels import first_token_label, parsed_labels
from mle_gym.tasks.mlebench.per_category import cut_categories, metadata, read_items, write_metadata
from mle_gym.tasks.mlebench.pictures import class_looks, class_photo, mixed_up

_CONSTANT = 654
"""The species that the sample submission names throughout."""


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos whose first predicted category is wrong."""
    require_columns(submission, "id", "predicted")
    expected = "a whole number, or several with the best first, and no empty or decimal cell in the whole column"
    predicted = parsed_labels(submission, "predicted", first_token_label, expected)
    rows = aligned(submission.assign(predicted=predicted), answers, "id")
    return float(1.0 - np.mean(answers["predicted"].to_numpy() == rows["predicted"].to_numpy()))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 12 % of each species; the archives keep their names, but are not compressed."""
    whole, items = read_items(raw / "train2019.json")
    train, test = cut_categories(items, 0.12)
    renamed = {image["file_name"]: f"test2019/{Path(image['file_name']).name}" for _, image in test}
    with (
        tarfile.open(raw / "train_val2019.tar.gz", "r|*") as source,
        tarfile.open(public / "train_val2019.tar.gz", "w") as kept,
        tarfile.open(public / "test2019.tar.gz", "w") as held_out,
    ):
        for member in source:
            if content := source.extractfile(member):
                copy = tarfile.TarInfo(renamed.get(member.name, member.name))
                copy.size = member.size
                (held_out if member.name in renamed else kept).addfile(copy, content)
    write_metadata(public / "train2019.json", metadata(whole, train))
    shown = [{**image, "file_name": renamed[image["file_name"]]} for _, image in test]
    write_metadata(public / "test2019.json", {"images": shown, "info": whole["info"], "licenses": whole["licenses"]})
    copy_files([(raw / "val2019.json", public / "val2019.json")])
    answers = pd.DataFrame(
        {"id": [image["id"] for _, image in test], "predicted": [annotation["category_id"] for annotation, _ in test]}
    )
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(predicted=_CONSTANT), public / "kaggle_sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped photos; the species decides colour and stripes."""
    common, mean = {"tiny": (10, 24), "small": (40, 40)}[size]
    kinds = ("Amphibians", "Birds", "Fungi", "Insects", "Plants", "Reptiles")
    others = np.setdiff1d(np.arange(1010), [_CONSTANT])
    species = np.concatenate([[_CONSTANT], rng.choice(others, common + 2, replace=False)])
    counts = np.concatenate([rng.integers(mean // 2, mean * 2, common), [4, 2, 1]])
    wanted = rng.permutation(np.repeat(np.arange(len(species)), counts))
    rows, looks = len(wanted), class_looks(rng, len(species))
    ids = rng.choice(265_000, rows, replace=False)
    annotations, images = [], []
    with tarfile.open(raw / "train_val2019.tar.gz", "w:gz") as archive:
        for row, look in enumerate(mixed_up(rng, wanted, len(species), 0.08)):
            number, category = int(ids[row]), int(species[wanted[row]])
            name = f"train_val2019/{kinds[category * len(kinds) // 1010]}/{category}/{hex_id(rng)}.jpg"
            photo = class_photo(rng, looks[look])
            member = tarfile.TarInfo(name)
            member.size = len(photo)
            archive.addfile(member, io.BytesIO(photo))
            annotations.append({"id": number, "image_id": number, "category_id": category})
            image = {"id": number, "file_name": name, "width": 32, "height": 32, "license": 0, "rights_holder": "x"}
            images.append(image)
    head = {"info": {"year": 2019, "description": "Invented data"}, "licenses": [{"id": 0, "name": "none", "url": ""}]}
    categories = [
        {"id": number, "name": str(number), "supercategory": kinds[number * len(kinds) // 1010]}
        for number in sorted(species.tolist())
    ]
    content = {**head, "categories": categories, "images": images, "annotations": annotations}
    write_metadata(raw / "train2019.json", content)
    write_metadata(raw / "val2019.json", {**head, "categories": categories, "images": [], "annotations": []})
