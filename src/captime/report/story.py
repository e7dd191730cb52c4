"""Everything that a report, a picture or a page is made of, read once from a ledger: facts and columns, no opinions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.campaign.identity import population_on_record
from captime.certificate import Certificate, Population
from captime.ledger import Certified, LedgerReader, Noted
from captime.report.known_runs import KnownRuns, known_runs
from captime.report.scoring import Lottery, Scores, lottery_of, scores_of, utility_of
from captime.runs import RunOutcome, Status
from captime.utilities.protocol import Utility

_FAILURES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Progress:
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
class Story:
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
    """

    path: Path
    names: Sequence[str]
    progress: Progress
    certificate: Certificate | None
    settings: Sequence[Mapping[str, object]] = ()
    origins: Sequence[str] = ()
    runs: KnownRuns | None = None
    scores: Scores | None = None
    utility: Utility | None = None
    lottery: Lottery | None = None
    scenario: Mapping[str, Any] = field(default_factory=dict)
    in_race: frozenset[int] = frozenset()
    instances: Mapping[int, str] = field(default_factory=dict)
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


def read_story(path: str | PathLike[str], utility: Utility | None = None) -> Story:
    """Read a campaign from its ledger, as of one moment; it may be running.

    Args:
        path: The ledger.
        utility: What an answer is worth, where the ledger names code that must not be executed to find out.
    """
    with LedgerReader(path) as reader, reader.snapshot():
        configs = reader.configs
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
        return Story(
            path=Path(path),
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
            instances={sample.position: sample.instance for sample in reader.sample_rows()},
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
        )


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


def progress_of(certified: Sequence[Certified], notes: Sequence[Noted]) -> Progress:
    """What was certified when, from the ledger's certificates and notes."""
    held = [row.certificate for row in certified]
    out = [
        (float(str(note.facts.get("cpu_seconds", 0.0))), tuple(_configs(note, "out")))
        for note in notes
        if note.kind == "candidates" and _configs(note, "out")
    ]
    return Progress(
        seconds=np.array([row.cpu_seconds for row in certified], dtype=np.float64),
        epsilon=np.array([each.epsilon for each in held], dtype=np.float64),
        gamma=np.array([np.nan if each.gamma is None else each.gamma for each in held], dtype=np.float64),
        config=np.array([each.config for each in held], dtype=np.int64),
        candidates=np.array([row.candidates for row in certified], dtype=np.int64),
        out=out,
    )
