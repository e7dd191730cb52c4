"""Text files line by line, with the limits that keep a hostile file from becoming a large one in memory."""

from collections.abc import Iterator
from pathlib import Path

from captime.errors import TableError
from captime.files import open_limited

LARGEST = 8 << 30
"""No table has more bytes than this: the largest number of cells as text has a few gigabytes."""
_BOM = b"\xef\xbb\xbf"


def text_lines(path: Path, *, max_line: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, numbered from 1, without their line ends (LF or CRLF, also mixed).

    A byte order mark at the start is skipped. NUL characters, lone carriage returns, bytes that are not
    UTF-8 and lines of more than `max_line` bytes are refused with their place.
    """
    with open_limited(path, LARGEST) as stream:
        number = 0
        # One byte more than allowed, so that a line without an end is noticed before it is read whole.
        while raw := stream.readline(max_line + 3):
            number += 1
            if number == 1:
                raw = raw.removeprefix(_BOM)
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            here = f"{path.name}, line {number}"
            if len(raw) > max_line:
                raise TableError(
                    f"{here}: the line is longer than {max_line} bytes; expected shorter lines. "
                    f"Is it a text file with line ends?"
                )
            _check_bytes(raw, here)
            try:
                yield number, raw.decode()
            except UnicodeDecodeError as flaw:
                raise TableError(
                    f"{here}, byte {flaw.start + 1}: found a byte that is not UTF-8; expected UTF-8 text. "
                    f"Convert the file."
                ) from None


def _check_bytes(raw: bytes, here: str) -> None:
    if b"\0" in raw:
        raise TableError(
            f"{here}, byte {raw.index(0) + 1}: found a NUL character; expected plain text. "
            f"If the file is UTF-16, save it as UTF-8."
        )
    if b"\r" in raw:
        raise TableError(
            f"{here}, byte {raw.index(13) + 1}: found a carriage return without a line feed; expected lines "
            f"that end in LF or CRLF. Convert the line ends."
        )
