"""Guesses at what was meant, for messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?`, or nothing if nothing known is near.

    >>> did_you_mean("detla", ["delta", "seed"])
    "; did you mean 'delta'?"
    """
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""
