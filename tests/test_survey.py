from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from mle_gym.survey import survey

TABLE = 'id,age,sex,joined,note,file,empty\n1,30.5,m,2020-01-31,"long, quoted",a/1.png,\n2,,f,2021-02-28,b,a/2.png,\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "images").mkdir()
    for name in ("1.png", "2.png", "x.txt"):
        (tmp_path / "images" / name).write_bytes(b"\x89PNG")
    (tmp_path / "blob.bin").write_bytes(bytes(range(256)))
    (tmp_path / "words.md").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / ".hidden").write_text("", encoding="utf-8")
    return tmp_path


def test_facts(folder: Path) -> None:
    facts = {fact.name: fact for fact in survey(folder)}
    assert list(facts) == ["blob.bin", "images", "train.csv", "words.md"]
    train = facts["train.csv"]
    assert train.columns == ("id", "age", "sex", "joined", "note", "file", "empty")
    assert train.rows == 2
    assert train.kinds == {
        "id": "num", "age": "num", "sex": "cat", "joined": "date", "note": "cat", "file": "file", "empty": "num",
    }  # fmt: skip
    assert train.gaps == {"age", "empty"}
    assert train.head[0] == "id,age,sex,joined,note,file,empty"
    assert (facts["images"].files, facts["images"].suffixes) == (3, (".png", ".txt"))
    assert facts["words.md"].head == ("one", "two")
    assert facts["blob.bin"].columns == ()


def test_free_text_and_names_are_text(tmp_path: Path) -> None:
    rows = [f"{i},person number {i},{'red' if i % 2 else 'blue'}" for i in range(100)]
    (tmp_path / "t.csv").write_text("id,name,colour\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (facts,) = survey(tmp_path)
    assert (facts.kinds["name"], facts.kinds["colour"]) == ("text", "cat")


def test_a_long_table_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 20_001, encoding="utf-8")
    assert survey(tmp_path)[0].rows is None
    (tmp_path / "u.csv").write_text("x\n" + "1\n" * 20_000, encoding="utf-8")
    assert survey(tmp_path)[1].rows == 20_000


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"a,b\n", b'a\n"open quote', b"a,b\n1\n1,2,3\n", b"x" * 10**6]
)
def test_odd_files_are_taken_as_they_are(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.csv").write_bytes(content)
    (facts,) = survey(tmp_path)
    assert facts.name == "odd.csv"
    assert all(len(line) <= 500 for line in facts.head)
    assert all(line.endswith("...") for line in facts.head if len(line) == 500)


def test_cached_until_the_folder_changes(folder: Path) -> None:
    first = survey(folder)
    assert survey(folder) is first
    (folder / "more.csv").write_text("a\n1\n", encoding="utf-8")
    os.utime(folder, (1, 1))
    assert len(survey(folder)) == len(first) + 1


def test_zip_files_are_counted_like_folders(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for name in ("a/1.jpg", "a/2.jpg", "notes.txt"):
            archive.writestr(name, "x")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 cut off")
    broken, photos = survey(tmp_path)
    assert (photos.files, photos.suffixes, photos.archive) == (3, (".jpg", ".txt"), True)
    assert (broken.files, broken.archive) == (0, False)
