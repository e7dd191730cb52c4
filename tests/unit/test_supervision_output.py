import random
import re
import time

import pytest

from captime.supervision.output import Capture, Matcher

PATTERNS = {
    "answer": "^s (SATISFIABLE|UNSATISFIABLE)",
    "value": r"^o (?P<sign>-?)(?P<value>\d+)$",
    "possessive": r"x\s*+$",
    "anchored-end": "done$",
    "not-before": r"(?<!un)known",
    "whole": "y+",
}
WORDS = [b"s SATISFIABLE", b"s UNSATISFIABLE", b"o 12", b"o -7", b"x", b"x ", b"done", b"unknown", b"known", b"yy", b""]
LONG = [b"q" * 4200, b"s SATISFIABLE" + b"z" * 70_000, b"q" * 70_000 + b"done", b"q" * 4090 + b"known"]


def by_hand(patterns: dict[str, str], text: bytes) -> dict[str, bytes]:
    """Line by line, with nothing clever."""
    found = {}
    for line in text.split(b"\n"):
        for name, pattern in patterns.items():
            longest = 64 * 1024 if pattern.startswith("^") else 4 * 1024
            match = re.search(pattern.encode(), line.removesuffix(b"\r")[:longest])
            if match is not None:
                group: str | int = "value" if "value" in match.re.groupindex else min(1, match.re.groups)
                found[name] = match.group(group)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_lines_are_matched_as_if_each_stood_alone(seed: int) -> None:
    """However the text is cut into chunks, with any line ends, long lines included; the last match counts."""
    rng = random.Random(seed)  # noqa: S311 (a test)
    words = WORDS + (LONG if seed % 4 == 0 else [])
    text = b"".join(rng.choice(words) + rng.choice([b"\n", b"\r\n", b" ", b""]) for _ in range(rng.randrange(120)))
    matcher = Matcher(PATTERNS)
    position = 0
    while position < len(text):
        size = rng.randrange(1, 3000)
        matcher.add(text[position : position + size])
        position += size
        if rng.random() < 0.5:
            matcher.look(0.01)
    matcher.finish()
    matcher.look(60.0)
    assert matcher.found == by_hand(PATTERNS, text)


def test_a_slow_pattern_is_looked_for_in_portions() -> None:
    """A search that takes the square of what it looks at never looks at much at once."""
    matcher = Matcher({"slow": "[^:]*:;"})
    matcher.add(b"a" * (64 * 1024) + b"\n" + b"b\n" * 20_000)
    start = time.process_time()
    matcher.look(0.0)
    assert time.process_time() - start < 20.0
    matcher.look(0.001)
    assert matcher.busy


def test_a_pattern_that_takes_for_ever_is_given_up() -> None:
    """A repetition within a repetition doubles the time with every letter; the supervisor has other duties."""
    matcher = Matcher({"answer": "^s ([A-Z]+)", "endless": "^(a+)+$"})
    matcher.add(b"s SAT\n" + b"a" * 60 + b"b\n")
    matcher.look(60.0)
    assert matcher.problem.startswith("the pattern for 'endless' took more than 2 s")
    assert matcher.found == {"answer": b"SAT"}
    assert not matcher.busy
    matcher.add(b"more\n")
    matcher.finish()
    matcher.look(60.0)


def test_only_both_ends_of_the_output_are_kept() -> None:
    """64 KiB each, whatever is in between."""
    capture = Capture()
    text = bytes(range(256)) * 4096
    for begin in range(0, len(text), 1000):
        capture.add(text[begin : begin + 1000])
    assert capture.total == len(text)
    assert capture.head == text[: 64 * 1024]
    assert capture.tail == text[-64 * 1024 :]
    short = Capture()
    short.add(b"abc")
    assert (short.head, short.tail) == (b"abc", b"abc")
