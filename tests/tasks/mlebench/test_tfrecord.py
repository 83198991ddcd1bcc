"""TFRecord files: published checksums, bytes spelled out by hand, files that TensorFlow's format allows, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_gym.tasks.mlebench.tfrecord import crc32c, read_examples, write_examples

RECORD = bytes.fromhex(
    "34000000000000005e33175c"  # 52 bytes follow, and the checksum of that
    "0a320a1e0a0a696d6167655f6e616d6512100a0e0a0c495349435f353537303134350a100a05696d61676512070a050a03696d67"
    "52952f35"
)
"""A record as TensorFlow lays it out: ``image_name`` = ISIC_5570145, ``image`` = img."""


def test_checksums_of_the_standard() -> None:
    # RFC 3720, appendix B.4.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_reads_a_record(tmp_path: Path) -> None:
    (tmp_path / "a.tfrec").write_bytes(RECORD * 2)
    examples = list(read_examples(tmp_path / "a.tfrec", verify=True))
    assert examples == [{"image_name": [b"ISIC_5570145"], "image": [b"img"]}] * 2
    assert list(read_examples(tmp_path / "a.tfrec", ["image"])) == [{"image": [b"img"]}] * 2


def test_reads_every_file_of_the_cases(prepare_cases: Path, tmp_path: Path) -> None:
    import zipfile

    for name in ("siim-isic-melanoma-classification", "cassava-leaf-disease-classification"):
        if not (prepare_cases / name).exists():
            pytest.skip(f"no case of {name}")
        with zipfile.ZipFile(prepare_cases / name / "raw.zip") as archive:
            members = [member for member in archive.namelist() if member.endswith(".tfrec")]
            assert len(members) == 16
            for member in members:
                archive.extract(member, tmp_path)
                for example in read_examples(tmp_path / member, verify=True):
                    assert example["image"] == [b"img"]


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.one_of(
            st.lists(st.binary(max_size=300), min_size=1, max_size=3),
            st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=3),
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
        ),
        max_size=4,
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, example: dict[str, list[bytes]]) -> None:
    path = tmp_path_factory.mktemp("records") / "a.tfrec"
    write_examples(path, [example, {}, example])
    assert list(read_examples(path, verify=True)) == [example, {}, example]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (RECORD[:5], "record 1: its length is damaged"),
        (b"\x35" + RECORD[1:], "record 1: its length is damaged"),
        (RECORD + RECORD[:-1], "record 2: the file ends inside of it"),
        (RECORD[:-1] + b"\x00", "record 1: its checksum is wrong"),
    ],
)
def test_damage_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.tfrec").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        list(read_examples(tmp_path / "a.tfrec", verify=True))


def test_a_record_of_something_else(tmp_path: Path) -> None:
    import struct

    from mle_gym.tasks.mlebench import tfrecord

    body = b"\x0a\x7fshort"
    length = struct.pack("<Q", len(body))
    (tmp_path / "a.tfrec").write_bytes(length + tfrecord._masked(length) + body + tfrecord._masked(body))
    with pytest.raises(ValueError, match=r"not a tf\.train\.Example"):
        list(read_examples(tmp_path / "a.tfrec"))
