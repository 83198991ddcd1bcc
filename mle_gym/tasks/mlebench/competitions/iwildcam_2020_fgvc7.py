"""iWildCam 2020: which animal did a camera trap see, at places that are not in the training data?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes, words
from mle_gym.tasks.mlebench.labels import accuracy
from mle_gym.tasks.mlebench.pictures import class_looks, class_pixels, mixed_up, uuid_like

_TRAIN = "iwildcam2020_train_annotations.json"
_TEST = "iwildcam2020_test_information.json"
_BOXES = "iwildcam2020_megadetector_results.json"
_SHARE = 0.22


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Share of photos in the right category."""
    return accuracy(submission, answers, "Id", "Category", "the number of a category")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out places, as many as bring the test photos to a share of 22 %."""
    whole = json.loads((raw / _TRAIN).read_text(encoding="utf-8"))
    places = _test_places([image["location"] for image in whole["images"]])
    train = [image for image in whole["images"] if image["location"] not in places]
    test = [image for image in whole["images"] if image["location"] in places]
    held_out = {image["id"] for image in test}
    for name, images in (("train", train), ("test", test)):
        copy_files((raw / "train" / image["file_name"], public / name / image["file_name"]) for image in images)
    annotations = [item for item in whole["annotations"] if item["image_id"] not in held_out]
    _write(public / _TRAIN, {**whole, "annotations": annotations, "images": train})
    _write(public / _TEST, {**json.loads((raw / _TEST).read_text(encoding="utf-8")), "images": test})
    copy_files([(raw / _BOXES, public / _BOXES)])
    found = [item for item in whole["annotations"] if item["image_id"] in held_out]
    answers = pd.DataFrame(
        {"Id": [item["image_id"] for item in found], "Category": [item["category_id"] for item in found]}
    )
    write_csv(answers, private / "answers.csv")
    guesses = np.random.RandomState(0).randint(0, 676, len(answers))
    write_csv(answers.assign(Category=guesses), public / "sample_submission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Striped photos, darker or brighter by place; the animal decides colour and stripes."""
    rows, count = {"tiny": (160, 20), "small": (1600, 60)}[size]
    classes = np.concatenate([[0], np.sort(rng.choice(np.arange(1, 676), 9, replace=False))])
    place = rng.integers(0, count, rows)
    animal = np.where(rng.random(rows) < 0.35, 0, (place + rng.integers(0, 6, rows)) % len(classes))
    looks, light = class_looks(rng, len(classes)), rng.normal(0, 15, count)
    shown = mixed_up(rng, animal, len(classes), 0.08)
    ids = [uuid_like(rng, "21bc-11ea-a13a") for _ in range(rows)]
    (raw / "train").mkdir()
    for name, look, where in zip(ids, shown, place, strict=True):
        photo = image_bytes(class_pixels(rng, looks[look], 32) + light[where], "JPEG", quality=80)
        (raw / "train" / f"{name}.jpg").write_bytes(photo)
    when = (pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 10**8, rows), unit="s")).astype(str)
    images = [
        {
            "seq_num_frames": 1,
            "location": int(place[row]),
            "datetime": f"{when[row]}.000",
            "id": name,
            "frame_num": 0,
            "seq_id": uuid_like(rng, "21bc-11ea-a13a"),
            "width": 32,
            "height": 32,
            "file_name": f"{name}.jpg",
        }
        for row, name in enumerate(ids)
    ]
    annotations = [
        {
            "count": int(label > 0),
            "image_id": name,
            "id": uuid_like(rng, "21bc-11ea-a13a"),
            "category_id": int(classes[label]),
        }
        for name, label in zip(ids, animal, strict=True)
    ]
    names = ["empty", *words(rng, len(classes) - 1)]
    categories = [
        {"id": int(number), "name": name, "count": int((animal == label).sum())}
        for label, (number, name) in enumerate(zip(classes, names, strict=True))
    ]
    info = {"version": "1.0", "description": "Invented data", "year": 2020}
    _write(raw / _TRAIN, {"annotations": annotations, "images": images, "categories": categories, "info": info})
    shown_categories = [{"id": item["id"], "name": item["name"]} for item in categories]
    _write(raw / _TEST, {"images": [], "categories": shown_categories, "info": info})
    confidence = np.where(animal > 0, rng.beta(8, 2, rows), rng.beta(2, 8, rows)).round(3)
    boxes = [
        {
            "id": name,
            "max_detection_conf": sure,
            "detections": [{"category": "1", "bbox": [0.1, 0.1, 0.6, 0.6], "conf": sure}] if sure > 0.2 else [],
        }
        for name, sure in zip(ids, confidence.tolist(), strict=True)
    ]
    kinds = {"1": "animal", "2": "person", "4": "vehicle"}
    _write(raw / _BOXES, {"images": boxes, "detection_categories": kinds, "info": {"detector": "invented"}})


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write JSON on one line, in ASCII."""
    with path.open("w", encoding="ascii") as file:
        json.dump(content, file)


def _test_places(locations: list[int]) -> set[int]:
    """Choose places at random, then move places across until their photos are as many as wanted.

    As in MLE-bench the share counts the test photos twice in its denominator.
    """
    photos = Counter(locations)
    train, test = split_rows(list(photos), test_size=_SHARE)

    def share() -> float:
        held_out = sum(photos[place] for place in test)
        return held_out / (len(locations) + held_out)

    while share() < _SHARE:
        test.append(train.pop())
    while share() > _SHARE:
        train.append(test.pop())
    return set(test)
