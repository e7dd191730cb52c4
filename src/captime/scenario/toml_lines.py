"""Where in a TOML file a field stands: good enough to send a reader to the right line, and silent where unsure."""

import re
from collections.abc import Sequence

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")


class Lines:
    """Knows on which line each table and each key begins.

    Args:
        text: The file.
    """

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        counts: dict[tuple[str, ...], int] = {}
        depth = 0
        for number, line in enumerate(text.splitlines(), start=1):
            header, key = _HEADER.match(line), _KEY.match(line)
            if depth == 0 and header is not None:
                table = _parts(header.group(2))
                if header.group(1) == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, str(counts[table]))
                self._found.setdefault(table, number)
            elif depth == 0 and key is not None:
                self._found.setdefault((*table, *_parts(key.group(1))), number)
            depth = max(0, depth + _opened(line)) if header is None or depth else depth

    def of(self, place: Sequence[str | int]) -> int | None:
        """Return the line of a field, or of the nearest table around it; None if even that was not found."""
        wanted = tuple(str(part) for part in place)
        while wanted:
            if wanted in self._found:
                return self._found[wanted]
            wanted = wanted[:-1]
        return None


def _parts(name: str) -> tuple[str, ...]:
    if name[:1] in "\"'":
        return (name[1:-1],)
    return tuple(part.strip().strip("\"'") for part in name.split("."))


def _opened(line: str) -> int:
    """Return how many more brackets a line opens than it closes, texts and comments left out."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"|\'[^\']*\'', "", line).partition("#")[0]
    return sum(bare.count(each) for each in "[{") - sum(bare.count(each) for each in "]}")
