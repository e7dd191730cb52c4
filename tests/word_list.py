"""Find words that the glossary replaces, and print where they stand and what to write in their place.

    python tests/word_list.py            # every hit beyond what `NOT_YET` allows; exit code 1 if there is one
    python tests/word_list.py --counts   # hits per room

A sentence about code has the thing in the code as its subject: the run, the worker, the configuration. The words below
hide that subject, or are private words for something that the field has a word for; see docs/glossary.md.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A blank in a phrase may be a line break, with the mark of a comment behind it.
_GAP = r"\s+(?:#\s*)?"
WORDS: tuple[tuple[str, str], ...] = (
    (r"nobody(?:'s)?", "name it: no run, no process, not known"),
    (r"(?:some|any)(?:body|one)(?:'s)?", "name it: a process, the user, any configuration"),
    (r"every(?:body|one)(?:'s)?", "name them: all configurations, every process"),
    (r"who(?:so)?ever", "name it: the process that, a configuration that"),
    (r"whom", "which; configurations and processes are things"),
    (rf"so{_GAP}(?:many|much)", "this many, at most n, n"),
    (rf"(?:go|goes|going|gone|went){_GAP}on", "resume, continue, keep …ing, be under way"),
    (r"sittings?", "call: one call of the command"),
    (rf"(?:this|one|two|earlier|another|first|last|all its){_GAP}li(?:fe|ves)(?:{_GAP}of)?", "call, process"),
)
_PATTERN = re.compile(
    "|".join(rf"(?P<w{index}>\b{pattern}\b)" for index, (pattern, _) in enumerate(WORDS)), re.IGNORECASE
)

NOT_YET: dict[str, int] = {}
"""Rooms with hits left, and how many. A number may only fall; a room without hits leaves the list."""

_ENDINGS = {".py", ".md", ".toml", ".js", ".css", ".html", ".txt", ".cff", ".yml", ""}
_TREES = ("src", "docs", "tests", "changelog.d")
# This file and its test name the words; stored ledgers and published results stay as they were written.
_LEFT_OUT = (
    "tests/word_list.py",
    "tests/unit/test_word_list.py",
    "docs/glossary.md",
    "tests/golden/ledgers/",
    "LICENSE",
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One word of the list in one file.

    Attributes:
        file: Its path, seen from the root of the project.
        line: The line, counted from 1.
        word: The word as it stands there.
        instead: What to write in its place.
    """

    file: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r}; write instead: {self.instead}"


def hits_in(file: str, text: str) -> Iterator[Hit]:
    """Yield the words of the list in a text."""
    for found in _PATTERN.finditer(text):
        index = int(str(found.lastgroup)[1:])
        line = text.count("\n", 0, found.start()) + 1
        yield Hit(file, line, " ".join(found.group().replace("#", " ").split()), WORDS[index][1])


def room_of(file: str) -> str:
    """Return the room of a file: a folder of the package, or the first folder of the path.

    >>> room_of("src/captime/ledger/rows.py"), room_of("src/captime/live.py"), room_of("docs/bounds.md")
    ('src/captime/ledger', 'src/captime', 'docs')
    """
    parts = file.split("/")
    if parts[0] == "src":
        return "/".join(parts[: min(3, len(parts) - 1)])
    return parts[0]


def tracked_files() -> list[str]:
    """Return the text files of the project, without those that are left out; in an unpacked archive, all there are."""
    if (ROOT / ".git").exists():
        found = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
        listed = found.stdout.splitlines()
    else:
        listed = [path.relative_to(ROOT).as_posix() for tree in _TREES for path in (ROOT / tree).rglob("*")]
    return [
        file
        for file in listed
        if Path(file).suffix in _ENDINGS and not file.startswith(_LEFT_OUT) and (ROOT / file).is_file()
    ]


def beyond(hits: list[Hit], allowed: dict[str, int]) -> list[Hit]:
    """Return the hits of all rooms that have more of them than allowed."""
    counts = Counter(room_of(hit.file) for hit in hits)
    return [hit for hit in hits if counts[room_of(hit.file)] > allowed.get(room_of(hit.file), 0)]


def main(arguments: list[str]) -> int:
    """Print the hits, or their counts; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", action="store_true", help="print the hits per room and stop")
    wanted = parser.parse_args(arguments)
    hits = [hit for file in tracked_files() for hit in hits_in(file, (ROOT / file).read_text("utf-8", "replace"))]
    counts = Counter(room_of(hit.file) for hit in hits)
    if wanted.counts:
        rooms = sorted({room_of(file) for file in tracked_files()})
        _print([*(f"{counts[room]:5} {room}" for room in rooms), f"{len(hits):5} together"])
        return 0
    too_many = beyond(hits, NOT_YET)
    _print([str(hit) for hit in too_many])
    _print([f"tests/word_list.py: {room} has no hits any more; take it out of NOT_YET" for room in clean(counts)])
    return 1 if too_many else 0


def clean(counts: Counter[str]) -> list[str]:
    """Return the rooms of the list that have no hits any more."""
    return [room for room in NOT_YET if not counts[room]]


def _print(lines: list[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
