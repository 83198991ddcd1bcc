"""Bristol-Myers Squibb - Molecular Translation: which molecule does a drawing show?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, split_rows, write_csv
from mle_gym.tasks.mlebench.imitate import hex_id, image_bytes
from mle_gym.tasks.mlebench.text import mean_text_distance


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Mean Levenshtein distance in characters."""
    return mean_text_distance(submission, answers, "image_id", "InChI")


def _place(image: str) -> str:
    """Path of a picture below its folder."""
    return f"{image[0]}/{image[1]}/{image[2]}/{image}.png"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 20 % of the labelled pictures."""
    train, test = split_rows(read_csv(raw / "train_labels.csv"), test_size=0.2)
    for name, rows in (("train", train), ("test", test)):
        places = map(_place, rows["image_id"])
        copy_files((raw / "train" / place, public / name / place) for place in places)
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(InChI="InChI=1S/H2O/h1H2"), public / "sample_submission.csv")
    copy_files([(raw / "extra_approved_InChIs.csv", public / "extra_approved_InChIs.csv")])


def _inchi(carbons: int, group: str, inside: bool) -> str:
    """Return the InChI of a chain with a group at its first carbon, or with ``inside`` at its second."""
    hydrogens = 2 * carbons + {"OH": 2, "NH2": 3}.get(group, 1)
    atom = group.removesuffix("H2").removesuffix("H")
    formula = f"C{carbons}H{hydrogens}{atom}"
    last = carbons + 1
    if inside:
        chain = f"c1-{'-'.join(map(str, range(3, carbons + 1)))}(2){last}"
        inner = "3" if carbons == 4 else f"3-{carbons - 1}"
        places = {"OH": f"{carbons}-{last}H,{inner}H2", "NH2": f"{carbons}H,{inner},{last}H2"}
        return f"InChI=1S/{formula}/{chain}/h{places.get(group, f'{carbons}H,{inner}H2')},1-2H3"
    chain = f"c{'-'.join(map(str, range(1, last + 1)))}"
    middle = f"{last}H,2-{carbons}H2" if group == "OH" else f"2-{last if group == 'NH2' else carbons}H2"
    return f"InChI=1S/{formula}/{chain}/h{middle},1H3"


def _drawing(rng: np.random.Generator, carbons: int, group: str, inside: bool) -> bytes:
    """Draw a zigzag with the group's letters at its end, or above its last but one corner; with specks."""
    from PIL import Image, ImageDraw

    step, left = int(rng.integers(10, 15)), int(rng.integers(4, 10))
    corners = [(left + i * step, 44 + 8 * (i % 2)) for i in range(carbons)]
    x, y = corners[-2] if inside else corners[-1]
    end = (x, y - 16) if inside else (x + step, 44 + 8 * (carbons % 2))
    picture = Image.new("L", (corners[-1][0] + 40, 76), 255)
    pen = ImageDraw.Draw(picture)
    pen.line(corners, fill=0)
    pen.line([(x, y), end], fill=0)
    pen.text((end[0] + 2, end[1] - (12 if inside else 6)), group, fill=0)
    if rng.random() < 0.2:
        picture = picture.transpose(Image.Transpose.ROTATE_90)
    pixels = np.asarray(picture).copy()
    pixels[rng.random(pixels.shape) < 0.004] = 0
    return image_bytes(pixels)


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Line drawings of chains of 4 to 12 carbons that end in an alcohol, an amine or a halogen."""
    kinds = [(n, group, inside) for n in range(4, 13) for group in ("OH", "NH2", "F", "Cl") for inside in (False, True)]
    labels = []
    for _ in range({"tiny": 150, "small": 1500}[size]):
        kind = kinds[rng.integers(len(kinds))]
        image = hex_id(rng, 12)
        place = raw / "train" / _place(image)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_drawing(rng, *kind))
        labels.append((image, _inchi(*kind)))
    write_csv(pd.DataFrame(labels, columns=["image_id", "InChI"]), raw / "train_labels.csv")
    approved = [_inchi(n, group, False) for n in range(13, 40) for group in ("OH", "NH2", "F", "Cl")]
    write_csv(pd.DataFrame({"InChI": approved}), raw / "extra_approved_InChIs.csv")
