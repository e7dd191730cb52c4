"""What the page is told: words and trees of elements, as JSON. Nothing here is markup."""

import math
from datetime import UTC, datetime

import numpy as np

from captime.dashboard.follower import LedgerFollower
from captime.ledger.ownership import SlotId, SlotUse
from captime.report.charts.nodes import Json, visible
from captime.report.charts.svg import draw
from captime.report.known_runs import utility_of
from captime.report.ledger_words import OVER, account_of_story, doubts_of, length_on_record, note_words
from captime.report.story import Pace, ProgressCurve, Story, floor_of, in_race, progress_of
from captime.report.views.epsilon import epsilon_view
from captime.report.views.intervals import intervals_view
from captime.report.views.view import View
from captime.report.words import (
    busy_words,
    cpu_time,
    gamma_words,
    rounded_down,
    rounded_up,
    slot_names,
    statement,
    time_word,
)
from captime.runs import RunOutcome, RunRequest
from captime.utilities.durations import duration_text, rounded_time

# What changes without a new row in the ledger: whether the campaign is running, and what is on its slots.

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


# What the page is told: words and trees of elements, as JSON. Nothing here is markup.

_LOG = 20
_QUIET = frozenset({"facts"})
_FLAGGED = 30


def state_of(window: LedgerFollower, width: float) -> dict[str, object]:
    """Everything the page shows.

    Args:
        window: What is known.
        width: Of the page's charts, in pixels.
    """
    names = [config.name for config in window.configs]
    story = _story(window, names)
    goal = story.goal
    return {
        "title": visible(window.path.name),
        "reading": round(window.caught_up, 3),
        "statement": _statement(story),
        "tiles": _tiles(window, goal),
        "figures": [
            _figure(view, width) for view in (epsilon_view([story]), intervals_view(story)) if view is not None
        ],
        "recent": [_outcome(window, names, outcome) for outcome in window.recent],
        "log": [
            {
                "at": _moment(note.at_ns),
                "kind": visible(note.kind),
                "words": visible(note_words(names, note.kind, note.facts)),
            }
            for note in [note for note in window.notes if note.kind not in _QUIET][: -_LOG - 1 : -1]
        ],
        "warnings": _warnings(window, story),
    }


def _story(window: LedgerFollower, names: list[str]) -> Story:
    held = window.certified[-1] if window.certified else None
    progress: ProgressCurve = progress_of(window.certified, window.notes)
    return Story(
        path=window.path,
        names=names,
        settings=[config.parameters for config in window.configs],
        origins=[config.origin for config in window.configs],
        progress=progress,
        certificate=None if held is None else held.certificate,
        runs=window.runs,
        scores=window.scores if window.scores is not None and len(window.scores.n) == len(names) else None,
        utility=utility_of(window.scenario),
        scenario=window.scenario,
        in_race=in_race(window.notes, len(names)),
        notes=window.notes,
    )


def _statement(story: Story) -> str:
    account = account_of_story(story)
    return "Nothing is certified yet." if account is None else visible(statement(account))


def _tiles(window: LedgerFollower, goal: float) -> list[tuple[str, str]]:
    held = window.certified[-1] if window.certified else None
    runs = 0 if window.runs is None else int(window.runs.attempts.sum())
    cost = 0.0 if window.runs is None else float(window.runs.cost.sum())
    clock = window.scenario.get("clock", "cpu")
    spent = time_word(clock)
    tiles = []
    if held is not None:
        certificate = held.certificate
        asked = f", goal {goal:g}" if goal > 0.0 else ""
        tiles.append((f"epsilon{asked}", rounded_up(certificate.epsilon)))
        if certificate.gamma is not None:
            tiles.append(("gamma", gamma_words(certificate, 3)))
        tiles.append(
            (
                "expected utility",
                f"{rounded_down(certificate.utility_low, 3)} to {rounded_up(certificate.utility_high, 3)}",
            )
        )
        tiles.append(("candidates left", f"{held.candidates:,} of {max(len(window.configs), certificate.n_configs):,}"))
    tiles += [("runs", f"{runs:,}"), (spent, cpu_time(cost, clock).removesuffix(f" of {spent}"))]
    left = _pace(window, goal)
    return [*tiles, ("time left", left)] if left else tiles


def _pace(window: LedgerFollower, goal: float) -> str:
    if window.liveness != "running":
        return ""
    pace = Pace(goal)
    for certified in window.certified:
        pace.note(certified.wall_seconds, certified.certificate.epsilon)
    newest = window.certified[-1].certificate if window.certified else None
    met, length = len(window.instances), length_on_record(window.scenario, window.notes)
    if newest is not None and goal < floor_of(newest.epsilon, met, length, newest.population):
        return ""
    left = pace.seconds_left()
    return "" if left is None else f"about {duration_text(rounded_time(left))}"


def _figure(view: View, width: float) -> dict[str, object]:
    trees: list[Json] = [draw(chart, width).json() for chart in view.charts]
    return {"name": view.name, "title": view.title, "caption": view.caption, "charts": trees}


def _outcome(window: LedgerFollower, names: list[str], outcome: RunOutcome) -> dict[str, object]:
    request, measured = outcome.request, outcome.measured
    words = outcome.detail
    if measured is not None and outcome.status.value == "failed":
        words = f"{words} {measured.stderr_tail.decode('utf-8', 'backslashreplace')}".strip()
    where = "" if measured is None or not measured.host else f"{measured.host}, slot {measured.slot}"
    answer = b"" if measured is None or measured.answer is None else measured.answer
    return {
        "config": visible(names[request.config]) if request.config < len(names) else "",
        "instance": visible(window.instances.get(request.instance, f"position {request.instance}")),
        "verdict": outcome.status.value if outcome.verdict is None else outcome.verdict.value,
        "time": duration_text(outcome.runtime),
        "captime": duration_text(request.captime),
        "where": visible(where),
        "answer": visible(answer.decode("utf-8", "backslashreplace")[:60]),
        "words": visible(words[-200:]),
        "flags": list(measured.flags) if measured is not None else [],
    }


def _warnings(window: LedgerFollower, story: Story) -> list[str]:
    """Return what speaks against the question, what was noted as a warning, and flags of the newest runs."""
    serious = [note for note in window.notes if note.kind in {"warning", "conflict", "unfit", "waits"}]
    found = [visible(window.missing)] if window.missing else []
    found += [visible(f"{note.kind}: {note_words([], note.kind, note.facts)}") for note in serious]
    found += [visible(words) for words in doubts_of(story)]
    flags = [flag for outcome in window.recent if outcome.measured is not None for flag in outcome.measured.flags]
    kinds, counts = np.unique(flags, return_counts=True) if flags else (np.empty(0), np.empty(0))
    for flag, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        found.append(f"{count} of the last {len(window.recent)} runs: {flag}")
    return found[-_FLAGGED:]


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, tz=UTC).strftime("%H:%M:%S")
