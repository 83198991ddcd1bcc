"""README and docs: every Python block runs, every command and link exists, the task table is the registry's."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    """Page and line, and source, of every block of a language."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match[2] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append((f"{page.name}:{line}", match[3]))
    return found


def test_there_are_blocks() -> None:
    assert len(blocks("python")) >= 5


@pytest.mark.parametrize(("where", "source"), blocks("python"), ids=lambda value: value if ":" in value[:40] else "")
def test_python_block_runs(where: str, source: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, f"{where}\n{result.stderr}"


def test_named_commands_exist() -> None:
    known = {"tasks", "show", "prepare", "run", "grade", "doctor"}
    known |= {point.name for point in entry_points(group="mle_gym.commands")}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        shell = "\n".join(source for where, source in blocks("bash") if where.startswith(page.name))
        inline = "\n".join(re.findall(r"`((?:mle-gym|make) [^`]+)`", text))
        for command in re.findall(r"^mle-gym (\w+)", f"{shell}\n{inline}", re.MULTILINE):
            assert command in known, f"{page.name} names `mle-gym {command}`"
        for names in re.findall(r"^make ([a-z -]+)", f"{shell}\n{inline}", re.MULTILINE):
            assert set(names.split()) <= targets, f"{page.name} names `make {names}`"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if link.startswith("http"):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name) if name else page
            assert target.exists(), f"{page.name} links to {link}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor in slugs, f"{page.name} links to {link}"


def test_generated_parts_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
