"""Follows a ledger while it grows: a page at a time, never longer than a moment, and never in the writer's way.

All methods have to be called from one thread, which SQLite insists on.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from captime.errors import StorageTrouble
from captime.ledger import Certified, ConfigRow, LedgerReader, Noted
from captime.ledger.ownership import Owner, SlotUse, under_way
from captime.ledger.reading import Columns
from captime.report.known_runs import KnownRuns, ScoreIntervals, known_runs, lottery_of, scores_of, utility_of
from captime.report.ledger_words import OVER, liveness
from captime.runs import RunOutcome, RunRequest

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
