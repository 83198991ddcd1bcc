"""SIIM-ISIC Melanoma Classification: is a skin lesion malignant?"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mle_gym.tasks.mlebench.competition import Size
from mle_gym.tasks.mlebench.files import copy_files, read_csv, write_csv
from mle_gym.tasks.mlebench.imitate import image_bytes
from mle_gym.tasks.mlebench.metrics import binary_auc
from mle_gym.tasks.mlebench.tfrecord import image_names, write_examples

_TEST_RECORDS = ("train00-", "train06-")
_SHOWN = ["image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Area under the ROC curve."""
    return binary_auc(submission, answers, "image_name", "target")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the lesions in two of the sixteen files of records."""
    files = sorted((raw / "tfrecords").glob("train*.tfrec"))
    held_out = [file for file in files if file.name.startswith(_TEST_RECORDS)]
    rows = read_csv(raw / "train.csv")
    tested = rows["image_name"].isin(image_names(held_out))
    train, test = rows[~tested], rows[tested]
    write_csv(train, public / "train.csv")
    write_csv(test[_SHOWN], public / "test.csv")
    answers = test[["image_name", "target"]]
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(target=0), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        images = part["image_name"]
        copy_files((raw / "train" / f"{image}.dcm", public / name / f"{image}.dcm") for image in images)
        copy_files((raw / "jpeg/train" / f"{image}.jpg", public / "jpeg" / name / f"{image}.jpg") for image in images)
    kept = [file for file in files if file not in held_out]
    for name, records in (("train", kept), ("test", held_out)):
        copy_files(
            (file, public / "tfrecords" / f"{name}{number:02d}-{file.stem.split('-')[1]}.tfrec")
            for number, file in enumerate(records)
        )


def stand_in(raw: Path, rng: np.random.Generator, size: Size) -> None:
    """Skin of 32 x 32 pixels with a brown spot; malignant ones are larger, darker, ragged, and on older people."""
    each = {"tiny": 14, "small": 50}[size]
    rows = 16 * each
    names = [f"ISIC_{number:07d}" for number in rng.choice(10_000_000, rows, replace=False)]
    patients = [f"IP_{number:07d}" for number in rng.choice(10_000_000, rows // 4, replace=False)]
    target = rng.permutation(np.arange(rows) < 0.25 * rows).astype(int)
    sites = ["head/neck", "upper extremity", "lower extremity", "torso", "palms/soles", "oral/genital", None]
    frame = pd.DataFrame(
        {
            "image_name": names,
            "patient_id": rng.choice(patients, rows),
            "sex": rng.choice(["male", "female"], rows),
            "age_approx": (rng.normal(48 + 8 * target, 14) / 5).round().clip(2, 18) * 5,
            "anatom_site_general_challenge": rng.choice(np.array(sites, dtype=object), rows),
            "diagnosis": np.where(target == 1, "melanoma", rng.choice(["unknown", "nevus"], rows, p=[0.8, 0.2])),
            "benign_malignant": np.where(target == 1, "malignant", "benign"),
            "target": target,
        }
    )
    frame.to_csv(raw / "train.csv", index=False)
    for folder in ("train", "jpeg/train"):
        (raw / folder).mkdir(parents=True)
    pictures: list[bytes] = []
    for row in frame.itertuples():
        pixels = _lesion(rng, bool(row.target))
        pictures.append(image_bytes(pixels, "JPEG", quality=90))
        (raw / "jpeg/train" / f"{row.image_name}.jpg").write_bytes(pictures[-1])
        (raw / "train" / f"{row.image_name}.dcm").write_bytes(_dicom(pixels, str(row.image_name), str(row.patient_id)))
    # The records hold no label here: those of the test set are handed out as they are.
    order = rng.permutation(rows)
    for file in range(16):
        examples = (
            {"image": [pictures[row]], "image_name": [names[row].encode()]}
            for row in order[file * each : (file + 1) * each]
        )
        write_examples(raw / "tfrecords" / f"train{file:02d}-{each}.tfrec", examples)


def _lesion(rng: np.random.Generator, malignant: bool) -> NDArray[np.uint8]:
    y, x = np.mgrid[:32, :32] - rng.uniform(12, 19, (2, 1, 1))
    bumps = (0.18 if malignant else 0.09) * rng.uniform(0.3, 1.5)
    edge = 1 + bumps * np.sin(rng.integers(3, 7) * np.arctan2(y, x) + rng.uniform(0, 6))
    radius = rng.uniform(4, 9) + 1.6 * malignant
    spot = 1 / (1 + np.exp((np.hypot(y, x) / edge - radius) / 0.7))
    dark = rng.uniform(0.25, 0.7) + 0.1 * malignant
    tint = np.array((0.8, 1.0, 1.0)) * dark
    pixels = rng.normal((205, 160, 140), 7, (32, 32, 3)) * (1 - spot[:, :, None] * tint)
    return np.asarray(np.clip(pixels, 0, 255), dtype=np.uint8)


def _dicom(pixels: NDArray[np.uint8], name: str, patient: str) -> bytes:
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID, ExplicitVRLittleEndian, SecondaryCaptureImageStorage

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = UID(f"1.2.840.99.{int(name.removeprefix('ISIC_')) + 1}")
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    image = FileDataset(name, {}, file_meta=meta, preamble=bytes(128))
    image.SOPClassUID = meta.MediaStorageSOPClassUID
    image.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    image.Modality, image.PatientID, image.PhotometricInterpretation = "XC", patient, "RGB"
    image.Rows, image.Columns, image.SamplesPerPixel, image.PlanarConfiguration = *pixels.shape, 0
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 8, 8, 7, 0
    image.PixelData = pixels.tobytes()
    buffer = io.BytesIO()
    image.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()
