"""Slots in words, for pages and terminals: what each is called, how many are busy, how far a run has come."""

from collections.abc import Sequence

from captime.ledger.slot_board import SlotUse
from captime.utilities.durations import duration_text


def slot_names(seats: Sequence[SlotUse]) -> list[str]:
    """As short as each can be told: the machine where there are several, the worker where a machine has several."""
    workers: dict[str, set[str]] = {}
    for each in seats:
        workers.setdefault(each.seat.host, set()).add(each.seat.worker)
    # The first part of a machine's name is enough if no two share it.
    short = {host: host.partition(".")[0] for host in workers}
    if len(set(short.values())) < len(short):
        short = {host: host for host in workers}
    told = []
    for seat in [each.seat for each in seats]:
        port = seat.worker.rpartition(":")[2] if len(workers[seat.host]) > 1 else ""
        host = short[seat.host] if len(workers) > 1 or port else ""
        place = ":".join(filter(None, (host, port)))
        told.append(f"slot {seat.slot}" + (f" on {place}" if place else ""))
    return told


def busy_words(seats: Sequence[SlotUse], unseated: int) -> str:
    """How many slots are busy, and how many runs wait for one.

    Args:
        seats: All of them.
        unseated: Runs that are on none, as far as anybody knows.
    """
    if not seats:
        return f"{unseated:,} {'run' if unseated == 1 else 'runs'} begun" if unseated else "nothing just now"
    busy = sum(seated.run is not None for seated in seats)
    waiting = f", {unseated:,} more given out" if unseated else ""
    return f"{busy:,} of {len(seats):,} {'slot' if len(seats) == 1 else 'slots'} busy{waiting}"


def age_words(seconds: float, captime: float | None) -> str:
    """How long a run has been under way, and how long it may be."""
    shown = seconds if captime is None else min(seconds, captime)
    limit = "" if captime is None else f" of {duration_text(captime)}"
    return f"{duration_text(round(shown, 1) if shown >= 1.0 else round(shown, 3))}{limit}"
