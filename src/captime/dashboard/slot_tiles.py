"""What changes without a new row in the ledger: whether the campaign is running, and what is on its slots."""

import math

from captime.dashboard.follower import LedgerFollower
from captime.ledger.slot_board import SlotId, SlotUse
from captime.report.charts.nodes import visible
from captime.report.ledger_words import OVER
from captime.report.words import busy_words, slot_names
from captime.runs import RunRequest
from captime.utilities.durations import duration_text

_TILES = 256


def live_part(window: LedgerFollower) -> dict[str, object]:
    """Return the state in one word, the slots in a sentence, and each slot as the page shows it."""
    flying = {(each.config, each.instance, each.attempt): (each, at_ns) for each, at_ns in window.in_flight}
    if window.seats:
        words = slot_names(window.seats)
        tiles = [
            _tile(window, told, None if seated.run is None else flying[seated.run][0], seated)
            for told, seated in zip(words, window.seats[:_TILES], strict=False)
        ]
    else:
        # The slot is unknown: what the ledger knows is shown all the same.
        shown = list(flying.values())[:_TILES] if window.unseated else []
        tiles = [_tile(window, "", request, SlotUse(SlotId(0), seen_ns=at_ns)) for request, at_ns in shown]
    return {"state": window.liveness, "board": _sentence(window), "slots": tiles}


def _sentence(window: LedgerFollower) -> str:
    if window.liveness in OVER:
        return "Nothing: the campaign is not running."
    more = len(window.seats) - _TILES
    told = busy_words(window.seats, window.unseated) + (f"; {more:,} not shown" if more > 0 else "")
    return f"{told[0].upper()}{told[1:]}."


def _tile(window: LedgerFollower, slot: str, request: RunRequest | None, seated: SlotUse) -> dict[str, object]:
    if request is None:
        return {"slot": visible(slot)}
    config, position = request.config, request.instance
    finite = math.isfinite(request.captime)
    return {
        "slot": visible(slot),
        "config": visible(window.configs[config].name) if config < len(window.configs) else f"configuration {config}",
        "instance": visible(window.instances.get(position, f"position {position}")),
        "captime": request.captime if finite else None,
        "limit": duration_text(request.captime) if finite else "",
        "seen": round(seated.seen, 3),
        "seen_ms": seated.seen_ns // 10**6,
    }
