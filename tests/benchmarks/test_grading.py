"""The benchmark of the graders repeats submissions so that they still are perfect, and says so where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.grading import main

from .test_scripts import load


def test_two_competitions(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLE_GYM_DATA", str(tmp_path))
    out = tmp_path / "grading.json"
    assert main(["--quick", "--json", str(out), "--tasks", "hotel-id-2021-fgvc8", "ml2021spring-hw2"]) == 0
    printed = capsys.readouterr().out
    results = load(out)["results"]
    assert list(results) == ["hotel-id-2021-fgvc8", "ml2021spring-hw2"]
    for name, result in results.items():
        assert name in printed
        assert result["note"] == ""  # so the repeated rows scored as the rows themselves do
        small, large = result["sizes"]["1000"], result["sizes"]["100000"]
        assert 1_000 <= small["rows"] < 2_000
        assert 100_000 <= large["rows"] < 101_000
        assert 0 < large["seconds"] < 60


def test_unknown_competition() -> None:
    with pytest.raises(SystemExit, match=r"no competition 'titanic'"):
        main(["--tasks", "titanic"])
