"""The documentation site: built strictly, linked within itself, complete, and readable without a network."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml  # type: ignore[import-untyped] # it comes without types

import captime

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


class Page(HTMLParser):
    """The addresses that a page uses, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of what an element loads, where it leads and what it is called."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.linked.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(found.get("href", ""))
        elif "src" in found:
            self.loaded.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """All pages of the site."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    """Without a network: files that are there, and anchors that the page has."""
    broken = [
        f"{path.relative_to(site)}: {target}"
        for path, page in pages.items()
        for target in [*page.linked, *page.loaded]
        if path.name != "404.html" and not leads_somewhere(path, target, pages)
    ]
    assert broken == []


def leads_somewhere(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    """Return whether a link of a page can be followed; links to other hosts are not tried."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if place.is_dir():
        place /= "index.html"
    anchor_there = not parts.fragment or place not in pages or unquote(parts.fragment) in pages[place].anchors
    return place.exists() and anchor_there


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    """No font, script, style or picture needs a network; style sheets included."""
    from_elsewhere = [
        f"{path.relative_to(site)}: {target}"
        for path, page in pages.items()
        for target in page.loaded
        if urlsplit(target).scheme not in ("", "data") or urlsplit(target).netloc
    ]
    styles = [
        path for path in site.rglob("*.css") if re.search(r"(?:url|import)\s*\(?\s*[\"']?https?:", path.read_text())
    ]
    assert from_elsewhere == []
    assert styles == []
    # With the address of a repository the theme asks its host for numbers to show.
    assert 'data-md-component="source"' not in (site / "index.html").read_text(encoding="utf-8")


def test_search_knows_the_pages(site: Path) -> None:
    """Also those that are generated: fields, the API, notebooks and pages from elsewhere in the repository."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    wanted = {
        "reference/fields.html",
        "reference/api.html",
        "experiments.html",
        "contributing.html",
        "guides/folder.html",
    }
    wanted |= {f"notebooks/{path.stem}.html" for path in NOTEBOOKS}
    assert wanted <= found
    assert (site / "search" / "search_index.js").exists()


def test_the_fields_page_has_every_field_of_the_schema(site: Path) -> None:
    """It is made from the schema, sections within sections included."""
    text = (site / "reference" / "fields.html").read_text(encoding="utf-8")
    for name in ("utility", "target.command", "target.environment.set", "instances.sampling", "stop.epsilon"):
        assert f"<code>{name}</code>" in text


def test_the_api_page_has_every_public_name(site: Path) -> None:
    """With its docstring; the two registers are named in the text."""
    text = (site / "reference" / "api.html").read_text(encoding="utf-8")
    documented = {name for name in captime.__all__ if f'id="captime.{name}"' in text}
    assert set(captime.__all__) - documented == {"PROCEDURES", "UTILITIES", "__version__"}


def test_every_page_is_in_the_menu() -> None:
    """A page that no menu leads to is not found."""
    listed = set(entries(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert there - listed == set()


def entries(part: Any) -> Iterator[str]:
    """Yield the pages of a menu."""
    if isinstance(part, str):
        yield part
    else:
        for inner in part.values() if isinstance(part, dict) else part:
            yield from entries(inner)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_has_its_outputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells, in an empty folder; the stored outputs are those of a run without errors."""
    monkeypatch.syspath_prepend(str(path.parent))
    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in stored if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    importlib.import_module("run").executed(path)


def test_there_are_six_notebooks_and_the_list_has_them() -> None:
    """A solver, a folder, a function, a database, a space and a table."""
    assert len(NOTEBOOKS) == 6
    text = (ROOT / "docs" / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in text] == []
