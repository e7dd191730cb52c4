"""Everything that a report, a picture or a page is made of, read once from a ledger: facts and columns, no opinions."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

from captime.arrays import FloatArray, IntArray
from captime.campaign.identity import population_on_record
from captime.certificate import Certificate, Population
from captime.ledger import Certified, LedgerReader, Noted
from captime.ledger.rows import SampleRow
from captime.procedures.fixed_set import Way
from captime.report.known_runs import (
    ANSWERED,
    CUT,
    FAILED,
    CaptimeDraws,
    KnownRuns,
    ScoreIntervals,
    known_runs,
    lottery_of,
    scores_of,
    utility_of,
)
from captime.runs import RunOutcome, Status
from captime.utilities.formula import Utility, duration_text, rounded_time

_FAILURES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ProgressCurve:
    """What was certified when, as columns.

    Attributes:
        seconds: CPU seconds spent.
        epsilon: Certified by then.
        gamma: Likewise; not a number where there is none.
        config: Recommended configuration.
        candidates: How many were left.
        out: (CPU seconds, configurations) at the moments at which some left the race.
        raised: (CPU seconds, configuration, captime) whenever a captime rose, where the source says so.
    """

    seconds: FloatArray
    epsilon: FloatArray
    gamma: FloatArray
    config: IntArray
    candidates: IntArray
    out: Sequence[tuple[float, tuple[int, ...]]] = ()
    raised: Sequence[tuple[float, int, float]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LedgerData:
    """A campaign as it stands in its file.

    Attributes:
        path: The file.
        names: Of the configurations, by index.
        settings: Their parameters, by index.
        origins: Where they came from, by index.
        progress: What was certified when.
        certificate: The last statement; None before the first.
        runs: What is known of every run; None if the file does not have them (a trace).
        scores: What that says of every configuration; None without runs or without a utility that can be read.
        utility: What an answer is worth; None if that cannot be read without executing code.
        lottery: How captimes were drawn; None if chance did not draw them.
        scenario: What was asked.
        in_race: Who may still be the best, as far as the file says.
        instances: Names by stream position.
        samples: The instances of the stream that were met.
        notes: What was noted on the way.
        flags: How many runs carry each warning.
        failures: The last runs that failed, newest first.
        rounds: Decisions taken.
        wall_seconds: How long it took, all calls together.
        head: Hash of the last row.
        running: Whether a process is still writing to it, as far as can be told.
        orphans: Outcomes that do not count.
        measured: Outcomes of real programs, with clocks and flags.
        missing: Which of its newest rows were on record and are not in the file any more; "" for none.
        campaign_id: A name that no other campaign has; "" for a trace.
        spending: CPU seconds by purpose, as noted when it last stopped; empty if that was not noted.
    """

    path: Path
    names: Sequence[str]
    progress: ProgressCurve
    certificate: Certificate | None
    settings: Sequence[Mapping[str, object]] = ()
    origins: Sequence[str] = ()
    runs: KnownRuns | None = None
    scores: ScoreIntervals | None = None
    utility: Utility | None = None
    lottery: CaptimeDraws | None = None
    scenario: Mapping[str, Any] = field(default_factory=dict)
    in_race: frozenset[int] = frozenset()
    instances: Mapping[int, str] = field(default_factory=dict)
    samples: Sequence[SampleRow] = ()
    notes: Sequence[Noted] = ()
    flags: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[RunOutcome] = ()
    rounds: int = 0
    wall_seconds: float = 0.0
    head: str = ""
    running: bool = False
    orphans: int = 0
    measured: int = 0
    missing: str = ""
    campaign_id: str = ""
    spending: Mapping[str, float] = field(default_factory=dict)

    @property
    def grows(self) -> bool:
        """Whether configurations join on the way: from a space, or added by the user."""
        return self.scenario.get("space") is not None or any(note.kind == "configurations" for note in self.notes)

    @property
    def on_set(self) -> bool:
        """Whether the claim is about exactly these instances; intervals of all configurations are about more."""
        return population_on_record(self.scenario) is Population.THESE

    @property
    def whenever(self) -> str:
        """At which moments intervals of all configurations hold: each pays for as many as there are when it is made."""
        if self.on_set:
            return "if these instances are a fair sample of what is to come"
        if self.grows:
            return "for as many as there are now (with each that joins, the same runs show less)"
        return "at all times"

    @property
    def leader(self) -> int:
        """The recommended configuration; the first before anything is certified."""
        return 0 if self.certificate is None else self.certificate.config

    @property
    def delta(self) -> float:
        """The failure probability asked for."""
        return 0.1 if self.certificate is None else self.certificate.delta

    @property
    def goal(self) -> float:
        """The epsilon that was asked for last; 0 for none."""
        goals = [note.facts.get("epsilon") for note in self.notes if note.kind == "goal"]
        return float(str(goals[-1] if goals else self.scenario.get("goal", 0.0)))

    @property
    def clock(self) -> str:
        """On which clock runs were measured: `cpu` or `wall`."""
        return str(self.scenario.get("clock", "cpu"))

    @property
    def label(self) -> str:
        """A short name for legends."""
        return self.path.stem

    def ranking(self) -> IntArray:
        """Configurations by what is certain of them, the recommended one first."""
        order = np.arange(len(self.names)) if self.scores is None else self.scores.ranking()
        return np.concatenate(([self.leader], order[order != self.leader]))


def read_story(path: str | PathLike[str], utility: Utility | None = None) -> LedgerData:
    """Read a campaign from its ledger, as of one moment; it may be running.

    Args:
        path: The ledger.
        utility: What an answer is worth, where the ledger names code that must not be executed to find out.
    """
    with LedgerReader(path) as reader, reader.snapshot():
        return story_of(reader, utility)


def story_of(reader: LedgerReader, utility: Utility | None = None) -> LedgerData:
    """Read a campaign from an open ledger; `read_story` says the rest."""
    configs, samples = reader.configs, reader.sample_rows()
    outcomes = reader.outcomes()
    runs = known_runs(outcomes, [request for request, _ in reader.in_flight()])
    certified, notes = reader.certificates(), reader.events()
    last = certified[-1] if certified else None
    utility = utility_of(reader.scenario) or utility
    lottery = None if utility is None else lottery_of(reader.scenario, utility, len(configs))
    delta = float(str(reader.scenario.get("delta", 0.1))) if last is None else last.certificate.delta
    scores = None
    if utility is not None and len(runs) and 0.0 < delta < 1.0:
        scores = scores_of(runs, len(configs), utility, lottery, delta)
    return LedgerData(
        path=reader.path,
        names=[config.name for config in configs],
        settings=[config.parameters for config in configs],
        origins=[config.origin for config in configs],
        progress=progress_of(certified, notes),
        certificate=None if last is None else last.certificate,
        runs=runs,
        scores=scores,
        utility=utility,
        lottery=lottery,
        scenario=reader.scenario,
        in_race=in_race(notes, len(configs)),
        instances={sample.position: sample.instance for sample in samples},
        samples=samples,
        notes=notes,
        flags=reader.flags(),
        failures=reader.newest(_FAILURES_SHOWN, Status.FAILED),
        rounds=0 if last is None else last.rounds,
        wall_seconds=reader.clock(),
        head=reader.head,
        running=reader.in_use,
        orphans=int(outcomes["orphan"].sum()),
        measured=int((outcomes["cpu_ns"] >= 0).sum()),
        missing=reader.missing,
        campaign_id=reader.campaign_id,
        spending=spending_on_record(notes),
    )


def spending_on_record(notes: Sequence[Noted]) -> dict[str, float]:
    """Return CPU seconds by purpose as of the last stop; empty if no stop, or an older captime, noted them."""
    for note in reversed(notes):
        if note.kind == "stopped":
            found = note.facts.get("cpu_seconds_by_purpose")
            return {str(name): float(each) for name, each in found.items()} if isinstance(found, Mapping) else {}
    return {}


def everything_on_record(notes: Sequence[Noted]) -> bool:
    """Return whether the procedure's last facts say that every run of the set was ordered at once."""
    facts = [note.facts for note in notes if note.kind == "facts"]
    return bool(facts) and facts[-1].get("way") == Way.EVERYTHING


def in_race(notes: Sequence[Noted], n_configs: int) -> frozenset[int]:
    """Who may still be the best, by the notes of who left and who came back."""
    inside = set(range(n_configs))
    for note in notes:
        if note.kind == "candidates":
            inside -= set(_configs(note, "out"))
            inside |= set(_configs(note, "back"))
    return frozenset(inside)


def _configs(note: Noted, field_name: str) -> list[int]:
    found = note.facts.get(field_name)
    return [int(each) for each in found] if isinstance(found, list) else []


def progress_of(certified: Sequence[Certified], notes: Sequence[Noted]) -> ProgressCurve:
    """What was certified when, from the ledger's certificates and notes."""
    held = [row.certificate for row in certified]
    out = [
        (float(str(note.facts.get("cpu_seconds", 0.0))), tuple(_configs(note, "out")))
        for note in notes
        if note.kind == "candidates" and _configs(note, "out")
    ]
    return ProgressCurve(
        seconds=np.array([row.cpu_seconds for row in certified], dtype=np.float64),
        epsilon=np.array([each.epsilon for each in held], dtype=np.float64),
        gamma=np.array([np.nan if each.gamma is None else each.gamma for each in held], dtype=np.float64),
        config=np.array([each.config for each in held], dtype=np.int64),
        candidates=np.array([row.candidates for row in certified], dtype=np.int64),
        out=out,
    )


# Whether runs become longer or shorter along the stream, as they should not if instances come in random order.

# Fewer runs than this prove nothing.
_FEWEST = 60
# By chance it is seen in one campaign of ten thousand.
_CHANCE = 1e-4
# Runs with shorter captimes than this share of all runs have are left out, and all others are looked at up to there.
_SHORTEST = 0.25


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs of a configuration become longer, or shorter.

    Attributes:
        rank_correlation: Between the position in the stream and the time; from -1 to 1.
        chance: How likely one so far from 0 is if the order is random.
        runs: How many runs were looked at.
    """

    rank_correlation: float
    chance: float
    runs: int

    @property
    def words(self) -> str:
        """What to do about it."""
        how = "longer" if self.rank_correlation > 0 else "shorter"
        return (
            f"its runs become {how} along the stream of instances (rank correlation {self.rank_correlation:+.2f} over "
            f"{self.runs:,} runs; by chance {self.chance:.0e}). Are instances made, or listed, in an order that means "
            "something? Has the machine changed? Then nothing here is certain"
        )


def trend_of_leader(story: LedgerData) -> Trend | None:
    """The trend in the runs of the recommended configuration; None if there is none to speak of."""
    return None if story.runs is None else trend_of(story.runs.of(story.leader), len(story.names))


def trend_of(runs: KnownRuns, among: int = 1) -> Trend | None:
    """The trend in the runs of one configuration; None if there is none to speak of.

    Args:
        runs: Of that configuration.
        among: How many there were to choose from. It may owe its lead to luck on its first instances, and the more
            there are, the luckier is the luckiest.

    How long a run may take says nothing about how long it would take. So runs are chosen by their captimes, and all are
    looked at up to the same moment: what is compared is the shorter of that and the run's own time.
    """
    if len(runs) < _FEWEST:
        return None
    until = float(np.quantile(runs.captime, _SHORTEST))
    answered = (runs.kind == ANSWERED) & (runs.seconds < until)
    unfinished = np.isin(runs.kind, (CUT, FAILED)) | (runs.seconds >= until)
    chosen = (runs.captime >= until) & (answered | unfinished)
    times = np.where(answered, runs.seconds, until)[chosen]
    if len(times) < _FEWEST or np.all(times == times[0]):
        return None
    correlation, chance = rank_correlation(runs.position[chosen], times)
    chance *= among
    return Trend(correlation, chance, len(times)) if chance < _CHANCE else None


def rank_correlation(one: FloatArray | IntArray, other: FloatArray | IntArray) -> tuple[float, float]:
    """Return Spearman's rank correlation, and how likely one at least as far from 0 is if the two are independent.

    The same numbers as `scipy.stats.spearmanr`. Every command loads this module, and loading scipy.stats would take
    a third of the time in which a command starts.
    """
    correlation = float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])
    freedom = len(one) - 2
    # Student's t with n - 2 degrees of freedom, as for Pearson's correlation; a perfect order must not divide by zero.
    rest = max((1.0 - correlation) * (1.0 + correlation), 1e-30)
    distance = abs(correlation) * np.sqrt(freedom / rest)
    return correlation, float(2.0 * stdtr(freedom, -distance))


def _ranks(values: FloatArray | IntArray) -> FloatArray:
    """Return the rank of each value; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: FloatArray = np.cumsum(counts) - (counts - 1) / 2.0
    return means[which]


# How long it may still take, from how fast epsilon has fallen lately. A guess, and said to be one.

# Epsilon falls about like one over the square root of the time; the last stretch of it tells the pace.
_REMEMBERED = 64
_LEAST_SECONDS = 2.0


class Pace:
    """Remembers when epsilon was what.

    Args:
        goal: The epsilon asked for; 0 for none.
    """

    def __init__(self, goal: float) -> None:
        self._goal = goal
        self._noted: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self._now = 0.0

    def note(self, now: float, epsilon: float) -> None:
        """At that moment this was certified; only progress is remembered, and the newest moment.

        Epsilon rises when another configuration takes the lead: how fast it fell for the former one tells nothing then.
        """
        if self._noted and epsilon > self._noted[-1][1]:
            self._noted.clear()
        if not self._noted or epsilon < self._noted[-1][1]:
            self._noted.append((now, epsilon))
        self._now = now

    def seconds_left(self) -> float | None:
        """Until the goal is reached at this pace; None if it cannot be told yet."""
        certified = [(now, epsilon) for now, epsilon in self._noted if epsilon < 1.0]
        if len(certified) < 3 or not 0.0 < self._goal < certified[-1][1]:
            return None
        (first, wide), (last, narrow) = certified[0], certified[-1]
        if last - first < _LEAST_SECONDS:
            return None
        # Straight in log epsilon against log time; time counts from the start of the campaign.
        slope = math.log(wide / narrow) / math.log(max(last, 1e-9) / max(first, 1e-9))
        if slope < 0.05:
            return None
        reached_at: float = last * (narrow / self._goal) ** (1.0 / slope)
        return max(0.0, reached_at - self._now)

    def words(self, floor: float = 0.0) -> str:
        """Return the guess as half a sentence; nothing if there is none.

        Args:
            floor: What epsilon can fall to with all instances there are (`floor_of`). A goal below it is never reached,
                so no time is named for it.
        """
        if 0.0 < self._goal < floor < 1.0:
            return f"(about {floor:.2g} at best with all instances there are)"
        left = self.seconds_left()
        return "" if left is None else f"({self._goal:g} in about {duration_text(rounded_time(left))} at this pace)"


def floor_of(epsilon: float, met: int, n_instances: int | None, population: Population) -> float:
    """Return what epsilon can fall to with all instances there are, a guess: it falls like one over their root.

    About exactly these instances it falls to 0, and on an endless stream it falls for ever.

    Args:
        epsilon: What is certified.
        met: On how many instances.
        n_instances: How many there are; None for no end of them.
        population: What the claim is about.
    """
    if population is Population.THESE or n_instances is None:
        return 0.0
    return epsilon * math.sqrt(min(1.0, met / n_instances))
