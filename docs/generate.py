"""Fill the generated parts of the pages: the task table, the trainer's defaults, a page for each task.

Run ``python docs/generate.py`` after a change; ``--check`` only says whether something is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from task_pages import pages

from mle_gym.commands.tasks import markdown_table
from mle_gym.tasks.registry import list_tasks
from trainers.common.config import TrainConfig

ROOT = Path(__file__).parents[1]


def _tasks() -> str:
    return markdown_table(list_tasks("offline"))


def _defaults() -> str:
    return f"```toml\n{TrainConfig().to_toml().rstrip()}\n```"


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "tasks": ("README.md", _tasks),
    "defaults": ("docs/trainer.md", _defaults),
}


def fill(text: str, name: str, content: str) -> str:
    """Return ``text`` with the part between the two comments of this name replaced."""
    pattern = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"The comments around {name} are missing.")
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def main() -> int:
    """Write the pages, or say which would change."""
    check, stale = "--check" in sys.argv[1:], []
    for name, (page, make) in PARTS.items():
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = fill(old, name, make())
        if new != old:
            stale.append(page)
            if not check:
                path.write_text(new, encoding="utf-8")
    folder = ROOT / "docs" / "tasks"
    made = pages(task for task in list_tasks() if {"offline", "mlebench"} & set(task.tags))
    for name in sorted({*made, *(path.name for path in folder.glob("*.md"))}):
        path = folder / name
        if name in made and path.is_file() and path.read_text(encoding="utf-8") == made[name]:
            continue
        stale.append(f"docs/tasks/{name}")
        if check:
            continue
        if name in made:
            folder.mkdir(exist_ok=True)
            path.write_text(made[name], encoding="utf-8")
        else:
            path.unlink()
    for page in stale:
        print(f"{page} {'is out of date; run python docs/generate.py' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
