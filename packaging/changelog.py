"""Collect the fragments of changelog.d into CHANGELOG.md under the version of the package, and delete them."""

import argparse
import datetime as dt
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
UNRELEASED = "## Unreleased\n"
NOTHING = "\nSee the files in [changelog.d](changelog.d/README.md).\n"


def entries(folder: Path, kind: str) -> list[str]:
    """Return the fragments of one kind as items of a list, in the order of their names."""
    found = []
    for path in sorted(folder.glob(f"*.{kind}.md")):
        text = " ".join(path.read_text(encoding="utf-8").split())
        # Links of a fragment are seen from its folder, links of the changelog from the one above.
        found.append(f"- {text.replace('](../', '](')}")
    return found


def collected(changelog: str, folder: Path, version: str, date: str) -> str:
    """Return the changelog with the fragments of a folder as the newest version.

    Raises:
        ValueError: there is nothing to collect, or the version is there already.
    """
    parts = [f"### {title}\n\n" + "\n".join(found) for kind, title in KINDS.items() if (found := entries(folder, kind))]
    if not parts:
        raise ValueError(f"no fragments in {folder}; nothing to collect")
    if re.search(rf"^## {re.escape(version)}\b", changelog, flags=re.MULTILINE):
        raise ValueError(f"CHANGELOG.md has a section {version} already; raise the version first")
    before, found, after = changelog.partition(UNRELEASED)
    if not found:
        raise ValueError("CHANGELOG.md has no section Unreleased; expected the line '## Unreleased'")
    older = after.removeprefix(NOTHING).strip()
    section = "\n\n".join([f"## {version} ({date})", *parts])
    return before + UNRELEASED + NOTHING + f"\n{section}\n" + (f"\n{older}\n" if older else "")


def package_version() -> str:
    """Return the version in the package's own file."""
    text = (ROOT / "src" / "captime" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "([^"]+)"', text, flags=re.MULTILINE)[0]


def main() -> None:
    """Write CHANGELOG.md and delete the fragments."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--date", default=dt.datetime.now(tz=dt.UTC).date().isoformat())
    options = arguments.parse_args()
    path, folder = ROOT / "CHANGELOG.md", ROOT / "changelog.d"
    try:
        text = collected(path.read_text(encoding="utf-8"), folder, package_version(), options.date)
    except ValueError as error:
        sys.exit(f"changelog: {error}")
    path.write_text(text, encoding="utf-8")
    for kind in KINDS:
        for fragment in folder.glob(f"*.{kind}.md"):
            fragment.unlink()


if __name__ == "__main__":
    main()
