"""Check that a tag, the package, CITATION.cff, the conda recipe and the changelog name the same version.

A tag is refused while the address of the project is a placeholder.
"""

import re
import sys
import tomllib
from pathlib import Path

from changelog import package_version

ROOT = Path(__file__).parents[1]
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "packaging/conda/meta.yaml": r'^{% set version = "([^"]+)" %}$',
    "CHANGELOG.md": r"^## (\d[^ ]*) \(",
}


def complaints(tag: str, version: str) -> list[str]:
    """Return what does not fit; an empty tag is not compared."""
    found = [] if tag in ("", f"v{version}") else [f"the tag is {tag}, the package has version {version}"]
    for name, pattern in PLACES.items():
        named = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        if version not in named[:1]:
            found.append(f"{name} has {named[0] if named else 'no version'}, the package has version {version}")
    if tag:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        placeholders = [name for name, address in project["urls"].items() if "captime.example" in address]
        if placeholders:
            found.append(
                f"{', '.join(placeholders)} in pyproject.toml: captime.example is a placeholder; name the real address"
            )
    return found


if __name__ == "__main__":
    wrong = complaints(sys.argv[1] if len(sys.argv) > 1 else "", package_version())
    if wrong:
        sys.exit("\n".join(wrong))
