"""The page of a run: what it says, what it needs, what it survives."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mle_gym.commands.base import UserError
from trainers.common.audit import Audit
from trainers.common.jsonlines import JsonLines, write_json
from trainers.common.report import main, write_report
from trainers.common.report.curves import Curves
from trainers.common.report.data import read_run

from .conftest import TASK, samples

FILES = ("config.toml", "samples.jsonl", "metrics.jsonl", "audit.json", "summary.json", "evaluation.json")


class Page(HTMLParser):
    """Collects what the tests ask about."""

    VOID = frozenset({"meta", "br", "use", "path"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.headings: list[str] = []
        self._caption = ""
        self._cell: list[str] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.ids += [values["id"]] if values.get("id") else []  # type: ignore[list-item]
        self.links += [str(values[name]) for name in ("src", "href", "xlink:href") if name in values]
        if tag == "tr" and self._caption:
            self.tables[self._caption].append([])
        if tag in ("td", "th", "caption", "h1", "h2", "h3"):
            self._cell = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag, f"</{tag}> closes nothing"
        text = "".join(self._cell or []).strip()
        if tag == "caption":
            self._caption = text
            self.tables[text] = []
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append(text)
        elif tag in ("h1", "h2", "h3"):
            self.headings.append(text)
        if tag in ("td", "th", "caption", "h1", "h2", "h3"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def table(self, start: str) -> dict[str, list[str]]:
        """Rows by their first cell of the table whose caption starts so."""
        (rows,) = [rows for caption, rows in self.tables.items() if caption.startswith(start)]
        return {row[0]: row[1:] for row in rows if row}


def test_curves_recompute_the_numbers() -> None:
    curves = Curves(samples())
    assert curves.versions == list(range(20))
    # Three samples count in each version; the machine's failure is masked.
    assert curves.reward[0] == pytest.approx((-9.8 - 10.0 - 9.6) / 3)
    assert curves.reward[-1] == pytest.approx((0.8 + 0.5 - 9.6) / 3)
    assert curves.scored == pytest.approx([0.0] * 10 + [2 / 3] * 10)
    assert curves.outcomes["machine failed"] == pytest.approx([0.25] * 20)
    assert [sum(shares) for shares in zip(*curves.outcomes.values(), strict=True)] == pytest.approx([1.0] * 20)
    assert [sum(shares) for shares in zip(*curves.families.values(), strict=True)] == pytest.approx([1.0] * 20)
    assert curves.families["linear"] == pytest.approx([0.5] * 20)
    assert all(math.isnan(share) for share in curves.copied[:10])
    assert curves.copied[10:] == pytest.approx([0.5] * 10)
    assert curves.milestones["loaded_data"][0] == pytest.approx(2 / 3)
    assert curves.milestones["wrote_submission"][-1] == pytest.approx(1 / 3)
    assert curves.duration(0.5)[0] == pytest.approx(2.5)  # 1 s and 4 s; a syntax error does not run


def test_cancelled_programs_count_nowhere() -> None:
    cancelled = [{**sample, "outcome": "cancelled", "reward": 0.0, "reward_valid": False} for sample in samples()[:8]]
    assert Curves([*samples(), *cancelled]).outcomes == Curves(samples()).outcomes


def test_many_versions_are_joined_without_losing_samples() -> None:
    records = [{**record, "version": 7 * number} for number, record in enumerate(samples() * 3)]
    curves = Curves(records)
    assert len(curves.bins) == 40
    assert sum(map(len, curves.bins)) == 240
    assert curves.versions == sorted(curves.versions)


def test_page_is_whole_and_self_contained(run: Path) -> None:
    path = write_report(run)
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert path == run / "report.html"
    assert page.open == []
    assert len(page.ids) == len(set(page.ids)), "ids are unique over all pictures"
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links), page.links
    assert not re.search(r"url\((?!#)", html)
    targets = re.findall(r"url\(#([^)]+)\)", html) + [link[1:] for link in page.links]
    assert set(targets) <= set(page.ids)
    assert "prefers-color-scheme: dark" in html
    # Both themes define every variable that the pictures use.
    used = set(re.findall(r"var\((--[\w-]+)\)", html))
    defined = [set(re.findall(r"(--[\w-]+):", block)) for block in re.findall(r":root \{(.*?)\}", html, re.DOTALL)]
    assert used <= defined[0]
    assert used - {"--font", "--mono"} <= defined[1]
    assert not re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", html), "no colour is fixed to one theme"
    assert html.count("<svg") == html.count('role="img"') == 9
    assert html.count("<figure>") == html.count("<details>") == 9


def test_page_says_how_asynchrony_went(run: Path) -> None:
    audit = Audit()
    audit.launch(range(50), version=0)
    audit.launch(range(50, 100), version=1)
    for ticket in range(100):
        audit.finish(ticket, float(ticket % 50), "trained" if ticket % 50 < 40 else "dropped", cut=ticket % 50 >= 40)
    trained = [ticket for ticket in range(100) if ticket % 50 < 40]
    audit.learn(trained, 3, [[1.0 if t % 50 < 20 else 3.0, 10, 5 if t % 50 >= 20 else 0, 10, 20] for t in trained])
    write_json(run / "audit.json", audit.report())
    lines = JsonLines(run / "metrics.jsonl")
    speed = {"rate_samples": 1.5, "limit_executors": 2.0, "limit_generator": 5.0, "limit_learner": 8.0}
    busy = {"busy_executors": 0.9, "busy_generator": 0.2, "busy_learner": 0.1, "limit_share": 0.75}
    lines.rewrite([{"update": 0, "lag_mean": 1.0, "lag_p95": 3.0, "lag_max": 4, "limit_samples": 2.0, **speed, **busy}])
    lines.close()
    page = Page(write_report(run).read_text(encoding="utf-8"))
    shares = page.table("Share of launched")
    # Launched, finished, trained, weighted, dropped: 80 are trained, of 160 weights the slower 40 have 120.
    assert shares["0 to 4.9 s"] == ["10.0%", "12.5%", "12.5%", "6.2%", "0.0%"]
    assert shares["34.3 to 39.2 s"] == ["10.0%", "12.5%", "12.5%", "18.8%", "0.0%"]
    assert shares["44.1 to 49 s"] == ["10.0%", "0.0%", "0.0%", "0.0%", "50.0%"]
    treated = page.table("How the loss treats")
    assert treated["0 to 4.9 s"] == ["0.0%", "50.0%", "2.5"]
    assert treated["34.3 to 39.2 s"] == ["50.0%", "50.0%", "2.5"]
    assert page.table("Of the launched programs")["0"] == ["100.0%", "100.0%", "0.0%", "60.0%", "60.0%", "40.0%"]
    assert page.table("Age of the trained samples")["0"] == ["1", "3", "4"]
    assert page.table("Share of the time that each stage")["0"] == ["90.0%", "20.0%", "10.0%", "75.0%"]
    assert page.table("Samples per second over the run, and the limit of each stage (75.0% reached)")["reached"] == [
        "1.5"
    ]


def test_page_says_what_the_run_recorded(run: Path) -> None:
    page = Page(write_report(run).read_text(encoding="utf-8"))
    outcomes = page.table("Programs by outcome")
    assert outcomes["scored"] == ["20", "25.0%"]
    assert outcomes["timeout"] == ["20", "25.0%"]
    assert outcomes["syntax error"] == ["10", "12.5%"]
    assert page.table("Share of programs that reached")["wrote submission"] == ["0.0%", "33.3%"]
    deciles = page.table("Share of launched")
    assert deciles["0 to 0.5 s"] == ["10.0%", "19.0%", "10.0%"]  # launched, trained, dropped
    assert deciles["4.5 to 5 s"] == ["10.0%", "1.0%", "10.0%"]
    assert page.table("Chosen by the public score")[TASK] == ["0.8", "0.7654", "1 s", "12"]
    assert page.table("Programs of the start policy")[TASK] == ["0.0%", "25.0%", "-9.8", "-2.75"]
    compared = page.table(f"{TASK}: fresh programs")
    assert compared["valid programs"] == ["12%", "38%"]
    assert compared["mean reward"] == ["-8.5", "-3.5"]
    assert compared["share of valid programs: forest"] == ["0%", "25%"]
    assert page.table("config.toml")["admission.rule"] == ["race"]


def test_programs_cannot_write_into_the_page(run: Path) -> None:
    html = write_report(run).read_text(encoding="utf-8")
    assert "<script>" not in html
    assert "# &lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_the_same_run_gives_the_same_page(run: Path) -> None:
    def normal(path: Path) -> str:
        # Ids count over the process; everything else is the run's.
        return re.sub(r"plot\d+-", "plot-", path.read_text(encoding="utf-8"))

    assert normal(write_report(run)) == normal(write_report(run, run / "again.html"))


@pytest.mark.parametrize("cut", [2, 25, 400])
def test_a_killed_run_is_reported_so_far(run: Path, cut: int) -> None:
    path = run / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    for name in ("summary.json", "evaluation.json"):
        (run / name).unlink()
    data = read_run(run)
    assert len(data.samples) < 80
    assert any("has not finished" in note for note in data.notes)
    assert any("last line of samples.jsonl is cut off" in note for note in data.notes)
    html = write_report(run).read_text(encoding="utf-8")
    assert "has not finished" in html
    assert "Before and after" not in Page(html).headings


def test_damaged_lines_are_counted(run: Path) -> None:
    path = run / "samples.jsonl"
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes() + b"[1]\n")
    data = read_run(run)
    assert len(data.samples) == 80
    assert data.notes == ["2 line(s) of samples.jsonl are damaged and were left out."]


@pytest.mark.parametrize("name", FILES)
def test_any_one_file_may_be_missing(run: Path, name: str) -> None:
    (run / name).unlink()
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert page.open == []


def test_no_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder"):
        write_report(tmp_path / "nothing")
    with pytest.raises(UserError, match="holds no run"):
        write_report(tmp_path)


def test_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run), "--output", str(tmp_path / "out" / "page.html")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out" / "page.html")
    assert (tmp_path / "out" / "page.html").stat().st_size > 10_000
    with pytest.raises(UserError, match="there are several"):
        main([str(run), str(run), "--output", "x.html"])


def test_picture_is_a_file_of_its_own(run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    assert main([str(run), "--picture", str(picture)]) == 0
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))  # well-formed XML, unlike a page
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    text = "".join(root.itertext())
    assert "How programs ended" in text
    assert "prefers-color-scheme: dark" in text
