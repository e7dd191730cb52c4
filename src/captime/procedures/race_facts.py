"""What an independent checker of a race needs to know and cannot read off the runs, as plain values for a ledger.

Nothing here is an input of anything: a checker computes bounds, duels and levels again from the runs and from these.
"""

import math
from dataclasses import dataclass

from captime.arrays import IntArray
from captime.procedures.race_terms import SHARES, Mode
from captime.procedures.scout import Scout


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same for all configurations.

    Attributes:
        mode: What delta covers.
        boost: B of the random captimes, on all positions.
        nodes: How many bets are mixed in bounds, at the shares of `sine_nodes`.
        fractions: The same for duels.
        longest: From which position on which longest captime holds, in CPU seconds.
        paired: Whether there are duels.
        joined: Who came later, each with its first position.
    """

    mode: Mode
    boost: float
    nodes: int
    fractions: int
    longest: tuple[tuple[int, float], ...]
    paired: bool
    joined: tuple[tuple[int, int], ...] = ()


def facts_of(
    terms: Terms, start: int | None, ranking: IntArray | None, scout: Scout | None
) -> dict[str, object] | None:
    """The facts so far; None before a champion is sent ahead or the race begins.

    Keys: `start` (J, the first position of the race) and `ranking` (best first), both only once the race has begun;
    `joined`, configurations that came later with their first positions, if any did; `shares` of delta; `mode`,
    `boost`, `paired`, `nodes`, `fractions`; `longest_captimes`, pairs of a position and the
    seconds from there on (None: no limit); and `scout` if there was one: its champion, from where on its scores count,
    how many of them have been counted (0 while it is still at work), and ln(1 / failure probability) of its bound.
    """
    began = start is not None and ranking is not None
    champion = None if scout is None else scout.champion
    if not began and champion is None:
        return None
    told: dict[str, object] = {
        "shares": dict(SHARES),
        "mode": terms.mode,
        "boost": terms.boost,
        "paired": terms.paired,
        "nodes": terms.nodes,
        "fractions": terms.fractions,
        "longest_captimes": [[place, seconds if math.isfinite(seconds) else None] for place, seconds in terms.longest],
    }
    if start is not None and ranking is not None:
        told |= {"start": start, "ranking": ranking.tolist()}
    if terms.joined:
        told["joined"] = [list(each) for each in terms.joined]
    if scout is not None and champion is not None:
        count = scout.count if scout.over else 0
        told["scout"] = {"champion": champion, "start": scout.start, "count": count, "level": scout.level}
    return told
