"""What the page is told: the ledger, followed while it grows, as words and trees of elements in JSON."""

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from captime.errors import StorageTrouble
from captime.ledger import Certified, ConfigRow, LedgerReader, Noted
from captime.ledger.ownership import Owner, SlotId, SlotUse, under_way
from captime.ledger.reading import Columns
from captime.report.charts.chart import Json, View, visible
from captime.report.charts.svg import draw
from captime.report.known_runs import KnownRuns, ScoreIntervals, known_runs, lottery_of, scores_of, utility_of
from captime.report.ledger_data import LedgerData, Pace, ProgressCurve, floor_of, in_race, progress_of
from captime.report.ledger_words import OVER, liveness, note_words, summary_of_story
from captime.report.views.intervals import epsilon_view, intervals_view
from captime.report.words import (
    Summary,
    busy_words,
    cpu_time,
    gamma_words,
    left_words,
    rounded_down,
    rounded_up,
    slot_names,
    statement,
    time_word,
)
from captime.runs import RunOutcome, RunRequest
from captime.utilities.formula import duration_text, rounded_time

# Follows a ledger while it grows: a page at a time, never longer than a moment, and never in the writer's way.
#
# All methods have to be called from one thread, which SQLite insists on.

QUERY_SECONDS = 0.2
"""No question to the ledger takes longer."""
ROWS = 10_000
"""No answer has more rows."""
# Looking again costs the machine something; it is allowed this share of the time.
_SHARE = 0.1
_KEPT = ("config", "position", "attempt", "captime", "status", "verdict", "runtime", "cost", "orphan")
_RECENT = 15


class LedgerFollower:
    """What is known of a campaign, kept up to date.

    Args:
        path: The ledger.

    Attributes:
        path: The ledger.
        missing: Which of the ledger's newest rows were on record and are not in the file any more; "" for none.
        scenario: What was asked.
        configs: The configurations.
        certified: All certificates so far.
        notes: What was noted so far.
        recent: The last outcomes, newest first.
        in_flight: What was begun and has not come back, with the moment it was written down (ns since 1970).
        seats: What runs on which slot, as far as the campaign says; empty if it is not running.
        unseated: How many runs are under way, or about to begin, that are on no slot that is known.
        scores: What the runs say of every configuration; None before there are any, or without a utility.
        runs: What is known of every run; None before there are any.
        last: Number of the ledger's newest row.
        read: Up to which row outcomes have been read.
        in_use: Whether a process has it open for writing.
        owner: The process that wrote to it last.
        instances: Names by stream position.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = LedgerReader(path, query_seconds=QUERY_SECONDS)
        self.missing = self._reader.missing
        self.scenario: Mapping[str, object] = self._reader.scenario
        self.configs: list[ConfigRow] = []
        self.certified: list[Certified] = []
        self.notes: list[Noted] = []
        self.recent: list[RunOutcome] = []
        self.in_flight: list[tuple[RunRequest, int]] = []
        self.seats: list[SlotUse] = []
        self.unseated = 0
        self.scores: ScoreIntervals | None = None
        self.runs: KnownRuns | None = None
        self.last = self.read = 0
        self.in_use = True
        self.owner: Owner | None = None
        self.instances: dict[int, str] = {}
        self._pages: list[Columns] = []
        self._samples = self._certificates = self._noted = 0
        self._next_scores = 0.0
        self._fresh = False

    @property
    def caught_up(self) -> float:
        """The share of the rows that has been read."""
        return min(1.0, self.read / self.last) if self.last else 1.0

    @property
    def liveness(self) -> str:
        """Return whether the campaign is running; see `ledger_words.liveness`."""
        return liveness(in_use=self.in_use, owner=self.owner)

    def refresh(self) -> bool:
        """Read what is new, as far as time allows; False if nothing but slots may have changed."""
        with self._reader.snapshot():
            last = self._reader.last_sequence
        self.in_use, self.owner = self._reader.in_use, self._reader.owner
        news = self._read_news(last)
        self._read_slots()
        return news

    def _read_slots(self) -> None:
        flying = {(each.config, each.instance, each.attempt): None for each, _ in self.in_flight}
        if self.liveness in OVER:
            self.seats, self.unseated = [], 0
        else:
            self.seats, self.unseated = under_way(self.path, self._reader.campaign_id, flying)

    def _read_news(self, last: int) -> bool:
        if last == self.last and self.read >= last:
            return self._judge()
        self.last = last
        try:
            self._read_small()
            self._read_page()
        except StorageTrouble:
            # It took too long this time; what was read counts, and the rest comes next time.
            return True
        self._judge()
        return True

    def _read_small(self) -> None:
        reader = self._reader
        with reader.snapshot():
            self.configs = reader.configs
            for certified in reader.certificates(self._certificates):
                self.certified.append(certified)
                self._certificates = certified.sequence
        with reader.snapshot():
            for note in reader.events(self._noted):
                self.notes.append(note)
                self._noted = note.sequence
            self.recent = reader.newest(_RECENT)
        with reader.snapshot():
            self.in_flight = reader.in_flight()
        with reader.snapshot():
            samples = reader.samples(self._samples)
            self.instances.update(zip(samples["position"].tolist(), samples["instance"].tolist(), strict=True))
            self._samples = int(samples["sequence"].max(initial=self._samples))

    def _read_page(self) -> None:
        with self._reader.snapshot():
            page = self._reader.outcomes(self.read, ROWS)
            end = self._reader.last_sequence
        if len(page["sequence"]):
            self._pages.append({name: page[name] for name in _KEPT})
            self._fresh = True
        # A page that is not full goes to the end of the ledger, whatever kind its last rows are.
        self.read = int(page["sequence"][-1]) if len(page["sequence"]) == ROWS else end

    def _judge(self) -> bool:
        """Scores and intervals, unless that was done a moment ago; True if they are new."""
        now = time.monotonic()
        if not self._fresh or now < self._next_scores or (self.read < self.last and len(self._pages) % 8):
            return False
        self._pages = [{name: np.concatenate([page[name] for page in self._pages]) for name in _KEPT}]
        self.runs = known_runs(self._pages[0], [request for request, _ in self.in_flight])
        utility = utility_of(self.scenario)
        delta = float(str(self.scenario.get("delta", 0.1)))
        if utility is not None and 0.0 < delta < 1.0:
            lottery = lottery_of(self.scenario, utility, len(self.configs))
            self.scores = scores_of(self.runs, len(self.configs), utility, lottery, delta)
        self._fresh = False
        self._next_scores = time.monotonic() + (time.monotonic() - now) / _SHARE
        return True

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()


# What the page is told: words and trees of elements, as JSON. Nothing here is markup.

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
    summary = summary_of_story(story)
    return {
        "title": visible(window.path.name),
        "reading": round(window.caught_up, 3),
        "statement": visible(statement(summary)),
        "tiles": _tiles(window, summary),
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
        "warnings": _warnings(window, summary),
    }


def _story(window: LedgerFollower, names: list[str]) -> LedgerData:
    held = window.certified[-1] if window.certified else None
    progress: ProgressCurve = progress_of(window.certified, window.notes)
    return LedgerData(
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


def _tiles(window: LedgerFollower, summary: Summary) -> list[tuple[str, str]]:
    held, goal = summary.certificate, summary.epsilon_goal
    spent = time_word(summary.clock)
    tiles = []
    if held is not None:
        asked = f", goal {goal:g}" if goal > 0.0 else ""
        tiles.append((f"epsilon{asked}", rounded_up(held.epsilon)))
        if held.gamma is not None:
            tiles.append(("gamma", gamma_words(held, 3)))
        tiles.append(("expected utility", f"{rounded_down(held.utility_low, 3)} to {rounded_up(held.utility_high, 3)}"))
        tiles.append(("candidates left", left_words(summary)))
    cost = cpu_time(summary.cpu_seconds, summary.clock).removesuffix(f" of {spent}")
    tiles += [("runs", f"{summary.runs:,}"), (spent, cost)]
    left = _pace(window, summary)
    return [*tiles, ("time left", left)] if left else tiles


def _pace(window: LedgerFollower, summary: Summary) -> str:
    if window.liveness != "running":
        return ""
    goal, newest = summary.epsilon_goal, summary.certificate
    pace = Pace(goal)
    for certified in window.certified:
        pace.note(certified.wall_seconds, certified.certificate.epsilon)
    if newest is not None and goal < floor_of(newest.epsilon, len(window.instances), summary.length, newest.population):
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


def _warnings(window: LedgerFollower, summary: Summary) -> list[str]:
    """Return what speaks against the question, what was noted as a warning, and flags of the newest runs."""
    serious = [note for note in window.notes if note.kind in {"warning", "conflict", "unfit", "waits"}]
    found = [visible(window.missing)] if window.missing else []
    found += [visible(f"{note.kind}: {note_words([], note.kind, note.facts)}") for note in serious]
    found += [visible(words) for words in summary.warnings]
    flags = [flag for outcome in window.recent if outcome.measured is not None for flag in outcome.measured.flags]
    kinds, counts = np.unique(flags, return_counts=True) if flags else (np.empty(0), np.empty(0))
    for flag, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        found.append(f"{count} of the last {len(window.recent)} runs: {flag}")
    return found[-_FLAGGED:]


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, tz=UTC).strftime("%H:%M:%S")
