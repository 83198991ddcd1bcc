"""Random Acts of Pizza: will somebody on Reddit be given the pizza that they ask for?"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import split_rows, write_csv, zip_files
from mle_gym.tasks.mlebench.imitate import sentence, words
from mle_gym.tasks.mlebench.metrics import binary_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "request_id", "requester_received_pizza")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a share of the labelled requests as Kaggle's test set is of all, with its fields only."""
    labelled, unlabelled = (json.loads((raw / f"{name}.json").read_text("utf-8")) for name in ("train", "test"))
    train, test = split_rows(labelled, test_size=len(unlabelled) / (len(labelled) + len(unlabelled)))
    shown = [{field: request[field] for field in unlabelled[0]} for request in test]
    for name, requests in (("train", train), ("test", shown)):
        (public / f"{name}.json").write_text(json.dumps(requests, indent=4), encoding="utf-8")
        archive = public / f"{name}.zip"
        zip_files(archive, [(public / f"{name}.json", f"{name}.json")], compression=zipfile.ZIP_DEFLATED)
    answers = pd.DataFrame(
        {
            "request_id": [request["request_id"] for request in test],
            "requester_received_pizza": [int(request["requester_received_pizza"]) for request in test],
        }
    )
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(requester_received_pizza=0), public / "sampleSubmission.csv")


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Requests in made-up words; long, grateful ones of known people succeed. The test lacks what came later."""
    train, test = {"tiny": (200, 80), "small": (1600, 640)}[size]
    vocabulary = words(rng, 500)
    forums = words(rng, 60)
    requests = [_request(rng, vocabulary, forums) for _ in range(train + test)]
    hidden = {"requester_received_pizza", "requester_user_flair", "post_was_edited", "request_text"}
    shown = [
        {field: value for field, value in request.items() if field not in hidden and "retrieval" not in field}
        for request in requests[train:]
    ]
    (raw / "train.json").write_text(json.dumps(requests[:train], indent=1), encoding="utf-8")
    (raw / "test.json").write_text(json.dumps(shown, indent=1), encoding="utf-8")


def _request(rng: np.random.Generator, vocabulary: list[str], forums: list[str]) -> dict[str, Any]:
    thanks, plain = vocabulary[:25], vocabulary[25:]
    length, grateful = int(rng.gamma(2.0, 22.0)) + 4, int(rng.poisson(1.5))
    text = sentence(rng, plain, length).split() + [str(word) for word in rng.choice(thanks, grateful)]
    text = [text[i] for i in rng.permutation(len(text))]
    age, karma = float(rng.gamma(1.2, 220.0)), int(rng.gamma(0.7, 1500.0))
    posted = rng.random() < 0.3
    chance = -2.3 + 0.012 * min(length, 120) + 0.45 * grateful + 0.9 * posted + 0.15 * np.log1p(karma) - 0.5
    success = bool(rng.random() < 1.0 / (1.0 + np.exp(-chance)))
    time = 1_300_000_000 + int(rng.integers(80_000_000))
    later = float(rng.uniform(30.0, 800.0))
    known = {
        "requester_account_age_in_days": age,
        "requester_days_since_first_post_on_raop": float(posted * rng.uniform(1.0, age + 1.0)),
        "requester_number_of_comments": int(rng.gamma(0.8, 120.0)),
        "requester_number_of_comments_in_raop": int(posted * rng.poisson(2.0)),
        "requester_number_of_posts": int(rng.gamma(0.8, 25.0)),
        "requester_number_of_posts_on_raop": int(posted),
        "requester_upvotes_minus_downvotes": karma,
        "requester_upvotes_plus_downvotes": int(karma * rng.uniform(1.2, 2.5)),
    }
    fields: dict[str, Any] = {
        "giver_username_if_known": "N/A",
        "number_of_downvotes_of_request_at_retrieval": int(rng.poisson(2.0)),
        "number_of_upvotes_of_request_at_retrieval": int(rng.poisson(5.0 + 3.0 * success)),
        "post_was_edited": bool(rng.random() < 0.1 + 0.2 * success),
        "request_id": f"t3_{np.base_repr(int(rng.integers(36**4, 36**5)), 36).lower()}",
        "request_number_of_comments_at_retrieval": int(rng.poisson(2.0 + 2.0 * success)),
        "request_text": " ".join(text),
        "request_text_edit_aware": " ".join(text),
        "request_title": f"[Request] {sentence(rng, plain, int(rng.integers(4, 14)))}",
        "requester_received_pizza": success,
        "requester_number_of_subreddits_at_request": 0,
        "requester_subreddits_at_request": sorted({str(f) for f in rng.choice(forums, rng.integers(0, 9))}),
        "requester_user_flair": "shroom" if success and rng.random() < 0.9 else None,
        "requester_username": f"{vocabulary[int(rng.integers(500))]}{rng.integers(10_000)}",
        "unix_timestamp_of_request": float(time),
        "unix_timestamp_of_request_utc": float(time - 3600),
    }
    fields["requester_number_of_subreddits_at_request"] = len(fields["requester_subreddits_at_request"])
    for name, value in known.items():
        fields[f"{name}_at_request"] = value
        fields[f"{name}_at_retrieval"] = value + later if isinstance(value, float) else value + int(rng.poisson(20.0))
    return dict(sorted(fields.items()))
