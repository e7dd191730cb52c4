"""Hooks of the documentation site: pages from elsewhere in the repository, generated pages, links and notebooks.

Markdown files of this repository link each other by path, so that they can be read without the site. Here a link to
a page of the site becomes a link within it, and a link to any other file leads to the repository.
"""

import base64
import json
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import fields

ROOT = Path(__file__).parents[2]
# Pages that stand elsewhere in the repository, and where they are on the site.
ELSEWHERE = {
    "examples/README.md": "examples.md",
    "experiments/README.md": "experiments.md",
    "experiments/configured.md": "experiments-configured.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
FROM = {site: source for source, site in ELSEWHERE.items()}
FIELDS = "reference/fields.md"
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
PICTURES = (".png", ".svg")
# A host with this ending exists nowhere: the project has no public address yet, and no link may lead there.
PLACEHOLDER = ".example"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures from elsewhere, the notebooks and the generated pages."""
    for source, site in ELSEWHERE.items():
        files.append(File.generated(config, site, content=(ROOT / source).read_text(encoding="utf-8")))
    shown = {each for page in [*ELSEWHERE, *(ROOT / "docs").glob("*.md")] for each in pictures_of(ROOT / page)}
    for picture in sorted(shown):
        name = picture.relative_to(ROOT).as_posix()
        if not name.startswith("docs/"):
            files.append(File.generated(config, name, abs_src_path=str(picture)))
    files.append(File.generated(config, FIELDS, content=fields.page()))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page into links of the site."""
    site = page.file.src_uri
    source = FROM.get(site, f"docs/{site}")
    parts = re.split(r"(^ *(?:```|~~~).*?^ *(?:```|~~~) *$)", markdown, flags=re.MULTILINE | re.DOTALL)
    known = {file.src_uri for file in files}
    repository = str(config.extra["repository"])

    def turned(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        leads = link(target, source, site, known, repository)
        if leads.startswith(repository) and urlsplit(repository).netloc.endswith(PLACEHOLDER):
            path = leads.removeprefix(repository).split("/main/", 1)[1]
            return text if path in text or text in path else f"{text} (`{path}`)"
        return f"{mark}[{text}]({leads})"

    return "".join(part if index % 2 else LINK.sub(turned, part) for index, part in enumerate(parts))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 (MkDocs asks by name)
    """Mark blocks that begin with the sentence of a certificate: it is read to its end, so it must not be cut off."""
    return re.sub(
        r'<div class="([\w -]*highlight)">(?=<pre>(?:<[^>]*>)*With probability )', r'<div class="\1 sentence">', html
    )


def link(target: str, source: str, site: str, known: set[str], repository: str) -> str:
    """Return where a link leads on the site.

    Args:
        target: As written.
        source: Path of the page in the repository.
        site: Path of the page on the site.
        known: Paths of all files of the site.
        repository: Address of the repository, for files that are not part of the site.
    """
    if "://" in target or target.startswith(("#", "mailto:", "data:")):
        return target
    path, mark, anchor = target.partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if place == "README.md":
        place = "docs/index.md"
    on_site = ELSEWHERE.get(place, place.removeprefix("docs/"))
    if on_site.endswith(".ipynb"):
        on_site = f"{on_site.removesuffix('.ipynb')}.md"
    if on_site in known:
        return os.path.relpath(on_site, posixpath.dirname(site) or ".") + mark + anchor
    if not (ROOT / place).exists():
        return target  # the strict build complains about it
    kind = "tree" if (ROOT / place).is_dir() else "blob"
    return f"{repository.rstrip('/')}/{kind}/main/{place}"


def pictures_of(page: Path) -> list[Path]:
    """Return the pictures that a page shows."""
    targets = [target for _, _, target in LINK.findall(page.read_text(encoding="utf-8"))]
    shown = [page.parent / target for target in targets if target.endswith(PICTURES) and "://" not in target]
    return sorted({path.resolve() for path in shown if path.exists()})


def notebook_page(path: Path) -> str:
    """Return a notebook with its outputs as a page."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    parts.insert(1, f"*This page is the notebook `docs/notebooks/{path.name}`, with the outputs of its last run.*")
    return "\n\n".join(parts) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif source.strip():
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            yield from _output(output)


def _output(output: dict[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        base64.b64decode(picture, validate=True)
        yield f"![output](data:image/png;base64,{picture})"
    elif "text/html" in data:
        # One line: blank lines would end the block of HTML.
        yield f'<div class="output">{" ".join("".join(data["text/html"]).split())}</div>'
    else:
        text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
        if text:
            yield f"```{{.text .output}}\n{text}\n```"
