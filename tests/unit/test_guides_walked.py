"""Getting started and the guides, followed literally: files are written, commands typed, in the order of the page."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs" / "start").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield what a reader does: write a file (its name, its text), or type commands."""
    for language, name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if name:
            yield "write", name, text
        elif language == "sh":
            yield "type", "", text
        else:
            # Blocks of Python without a name are executed by tests/unit/test_docs_true.py.
            assert language in ("text", "toml", "python"), f"{page.name}: a block of {language} that no test executes"


# The page on recorded tables needs no files but the examples; tests/unit/test_docs_true.py types its commands.
WALKED = [page for page in PAGES if page.stem != "table" and any(kind == "type" for kind, _, _ in steps(page))]


@pytest.mark.parametrize("page", WALKED, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_can_be_followed_literally(page: Path, tmp_path: Path) -> None:
    """From an empty folder, with nothing but what the page says, every command ends with exit code 0."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "solvers.csv").write_bytes((ROOT / "examples" / "solvers.csv").read_bytes())
    lines = ["set -euo pipefail"]
    for number, (kind, name, text) in enumerate(steps(page)):
        if kind == "type":
            lines.append(text)
        else:
            (tmp_path / f".block-{number}").write_text(text, encoding="utf-8")
            lines.append(f"cp .block-{number} {name}")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "COLUMNS": "200",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    promised = re.findall(r"^With probability .*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    printed = {numberless(line) for line in done.stdout.splitlines()}
    assert [sentence for sentence in promised if numberless(sentence) not in printed] == []


def numberless(sentence: str) -> str:
    """Return a sentence without decimals, runs made and the winner's name, which depend on the machine."""
    counted = re.sub(r"; \d+ of (\d+) were", r"; M of \1 were", re.sub(r"\d\.\d+", "N", sentence))
    return re.sub(r"%, [\w-]+ is", "%, X is", counted)


def test_every_guide_is_walked_but_those_of_words_alone() -> None:
    """Only the list of guides has no commands; tests/unit/test_docs_true.py types those of the page on tables."""
    assert {page.stem for page in PAGES} - {page.stem for page in WALKED} == {"index", "table"}
