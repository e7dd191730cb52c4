"""Ask and tell: captime decides, and the caller executes the runs, on a cluster of its own for instance.

`ask` gives runs to make, each with its captime; `tell` takes what became of them, in any order. The certificate is
valid at every moment, whatever is still under way, because a run that was not told yet counts as anything. With a
ledger, everything is on disk before it is decided from, and the same call resumes.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

import numpy as np

from captime.campaign.changes import Change, GrowingProcedure, SpaceMembers, change_of
from captime.campaign.external_runs import (
    listed_rows,
    outcome_told,
    population_for,
    proposer_on,
    question_for,
    recorded_seed,
    stream_for,
)
from captime.campaign.identity import (
    Growth,
    check_identity,
    known_instances,
    remembered,
)
from captime.campaign.journal import LedgerJournal, Recorder
from captime.campaign.resume import Steering, first_asked, new_changes
from captime.certificate import Certificate
from captime.errors import ScenarioDiffers, ScenarioError
from captime.evidence import Evidence
from captime.ledger import Ledger, LedgerReader
from captime.ledger.rows import Event, Noted, Started
from captime.live import Journal, NoJournal, tell_all, walk_again
from captime.procedures.protocol import Procedure
from captime.runs import RunRequest, Status
from captime.scenario.configurations import SpaceLike
from captime.scenario.spec import CampaignQuestion
from captime.skeptic.audit import Audit, audit
from captime.utilities import Utility

How = Literal["completed", "capped", "failed", "lost"]
_STATUS: Mapping[str, Status] = MappingProxyType(
    {"completed": Status.COMPLETED, "capped": Status.CAPPED, "failed": Status.FAILED, "lost": Status.LOST}
)


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """Please make this run.

    Attributes:
        config: Which configuration, by index.
        settings: Its settings, as given; on a space, a dictionary.
        position: Which instance: every configuration has to meet the same one at the same position.
        seed: For the program's random choices; the same for every configuration.
        captime: Stop it after this number of seconds.
        attempt: 0, or how often it was lost before.
        name: Name of the configuration.
        instance: The instance itself, if `AskTell` was given instances; otherwise the position.
    """

    config: int
    settings: Any
    position: int
    seed: int
    captime: float
    attempt: int
    name: str = ""
    instance: Any = None


class AskTell:
    """A campaign without slots: the caller makes the runs.

    Args:
        configurations: The candidates: settings by name, or a list of anything, handed back with each run. Left out if
            there is a space.
        utility: What an answer is worth.
        space: What can be set, in place of a list of candidates: see `captime.configure`.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal; 0 for as long as one likes.
        gamma: On a space, the other goal: the best fraction of it that may be missed.
        instances: What is to be solved; each run names one of them. They are met in random order.
        n_instances: Without a list: how many instances there are, each of which is used once, at the position of its
            number; None if there is no end of them. The caller's own order then has to be random.
        sampling: With a list: `shuffle` (each once, in random order), `given` or `replace` (drawn again and again).
        population: What the claim is about: `these`, exactly the instances listed, or `drawn`, the distribution they
            were drawn from. If it is left out, `these` for a list of instances where runs can be repeated.
        procedure: Name of the procedure; the race, and on a space the pool, if it is left out.
        options: Its options.
        seed: Key of everything that is drawn at random; a fresh one is drawn if it is left out. It must not be chosen
            after a look at results.
        repeatable: Whether a run takes the same time when it is made again with its seed. If not, lost runs are not
            asked for again.
        captime_first: The captime every configuration starts with, where captimes rise.
        ceiling: No run gets more seconds than this.
        ledger: The file in which every run is recorded. If it exists, the campaign in it is resumed: `pending` has the
            runs that were asked for and not told; instances may have been added at the end of their list. `captime
            status`, `verify`, `report` and `export` read it.

    Attributes:
        seed: As given, as on record, or as drawn.

    >>> campaign = AskTell(["fast", "slow"], "uniform(10)", epsilon=0.3)
    >>> while campaign.finished is None:
    ...     for run in campaign.ask():
    ...         seconds = 1.0 if run.settings == "fast" else 8.0
    ...         how = "completed" if seconds < run.captime else "capped"
    ...         campaign.tell(run, how, min(seconds, run.captime))
    >>> campaign.best, campaign.certificate.epsilon <= 0.3
    ('fast', True)
    """

    def __init__(
        self,
        configurations: Mapping[str, Any] | Sequence[Any] | None = None,
        utility: Utility | str | None = None,
        *,
        space: SpaceLike | None = None,
        delta: float = 0.1,
        epsilon: float = 0.1,
        gamma: float | None = None,
        instances: Sequence[Any] | None = None,
        n_instances: int | None = None,
        sampling: str = "shuffle",
        population: str | None = None,
        procedure: str | None = None,
        options: Mapping[str, object] | None = None,
        seed: int | None = None,
        repeatable: bool = True,
        captime_first: float = 1.0,
        ceiling: float = np.inf,
        ledger: str | PathLike[str] | None = None,
    ) -> None:
        if (configurations is None) == (space is None):
            found = "neither" if space is None else "both"
            raise ScenarioError(f"AskTell was given {found} of configurations and space; expected one of them")
        path = None if ledger is None else Path(ledger)
        recorded: Mapping[str, object] | None = None
        known: Sequence[str] = ()
        if path is not None and path.exists():
            with LedgerReader(path) as reader:
                recorded, known = reader.scenario, known_instances(reader)
        self.seed = recorded_seed(recorded, seed)
        chosen = procedure or ("race" if space is None else "pool")
        settings = {**({} if gamma is None else {"gamma": gamma}), **(options or {})}
        about = population_for(
            population, instances, sampling, recorded, repeatable=repeatable, procedure=chosen, options=settings
        )
        rows, self._given = (None, []) if configurations is None else listed_rows(configurations)
        self._question = question_for(
            rows,
            proposer_on(space, self.seed, (options or {}).get("effort"), recorded),
            stream_for(instances, n_instances, sampling, self.seed, known),
            utility,
            seed=self.seed,
            delta=delta,
            epsilon=epsilon,
            procedure=chosen,
            options=settings,
            captime_first=captime_first,
            ceiling=ceiling,
            repeatable=repeatable,
            population=about,
        )
        self._asked_ns: dict[RunRequest, int] = {}
        self._clock, self._path = 0.0, path
        self._ledger: Ledger | None = None
        self._recorder: Recorder | None = None
        self._journal: Journal = NoJournal()
        # Behind this moment lies whatever was under way when a ledger was closed.
        self._began_ns = time.monotonic_ns()
        if path is None:
            self._procedure, self._evidence, _ = self._fresh_books(self._question)
        else:
            self._record_in(path)

    # ------------------------------------------------------------------ the books

    def _fresh_books(
        self, begun: CampaignQuestion, length: int | None = None
    ) -> tuple[Procedure, Evidence, SpaceMembers | None]:
        """Return the procedure and the evidence as they are before the first run."""
        question, roster = self._question, None
        procedure = begun.build(length)
        evidence = Evidence(
            len(question.configs), procedure.plan, question.utility, repeatable=question.program.repeatable
        )
        if question.proposer is not None:
            known = () if self._ledger is None else self._ledger.configs
            write = _forget if self._ledger is None else self._ledger.added
            roster = SpaceMembers(question.proposer, question.program, question.configs, known, write)
            procedure = GrowingProcedure(procedure, roster, evidence)
        return procedure, evidence, roster

    def _record_in(self, path: Path) -> None:
        """Begin a ledger, or bring the books to where it ends."""
        question, exists, growth = self._question, path.exists(), Growth()
        if exists:
            with LedgerReader(path) as reader:
                growth, self._clock = check_identity(reader, question), reader.clock()
            if growth.configurations:
                raise ScenarioDiffers(
                    f"{path}: configurations were added since this ledger was begun; AskTell resumes with those it was "
                    "begun with. Leave the new ones out, or begin another ledger"
                )
        ledger = Ledger.open(path) if exists else Ledger.create(path, remembered(question), question.configs)
        self._ledger = ledger
        try:
            self._resume(ledger, growth)
        except BaseException:
            ledger.close()
            raise

    def _resume(self, ledger: Ledger, growth: Growth) -> None:
        question = self._question
        begun, length = first_asked(question, ledger)
        self._procedure, self._evidence, roster = self._fresh_books(begun, length)
        self._recorder = Recorder(ledger, len(question.configs), self._clock)
        recorder, procedure = self._recorder, self._procedure
        self._journal = LedgerJournal(ledger, question.stream, before_start=lambda: recorder.facts(procedure))
        steering = Steering(question, ledger, procedure, self._evidence, roster)
        before = _AskedBefore()
        for event in walk_again(procedure, self._evidence, before.reading(ledger.replay())):
            change = change_of(event) if isinstance(event, Noted) else None
            if change is not None:
                before.changes.append(change)
                steering.apply(change)
        ledger.noted("resumed" if before.events else "began", captime=version("captime"), order="arrival")
        for change in new_changes(question, ledger, before, growth, lambda: begun.build(length)):
            steering.apply(change)
        ledger.flush()

    # ------------------------------------------------------------------ asking and telling

    def ask(self, most: int = 1) -> list[RequestedRun]:
        """Return runs to make now, at most this number besides those that were asked for and not told yet."""
        evidence, procedure = self._evidence, self._procedure
        while procedure.finished() is None and (free := most - evidence.open + evidence.in_flight) > 0:
            orders = procedure.ask(free)
            self._journal.asked(free, orders)
            if len(orders) == 0 or evidence.aim(orders) == 0:
                break
        requests = evidence.take(most)
        if requests:
            self._journal.started(requests)
            self._asked_ns |= dict.fromkeys(requests, time.monotonic_ns())
        return [self._run(request) for request in requests]

    def _run(self, request: RunRequest) -> RequestedRun:
        element = self._question.stream.at(request.instance)
        return RequestedRun(
            request.config,
            self._settings(request.config),
            request.instance,
            element.seed,
            request.captime,
            request.attempt,
            self._question.configs[request.config].name,
            element.instance.value,
        )

    def _settings(self, config: int) -> Any:
        if config < len(self._given):
            return self._given[config]
        return dict(self._question.configs[config].parameters)

    def tell(self, run: RequestedRun, how: How, seconds: float, *, cost: float | None = None) -> None:
        """Take what became of a run.

        Args:
            run: As it was asked for.
            how: `completed` (a right answer, by itself), `capped` (stopped at its captime, or sooner), `failed` (it
                will never answer right) or `lost` (not the program's fault).
            seconds: How long it took, or was seen unfinished.
            cost: What it cost, if that is not the same; not with a ledger.

        A run that is told to have answered or failed after its captime counts as capped there.
        """
        if how not in _STATUS:
            raise ScenarioError(f"a run cannot end as {how!r}; it can be {', '.join(_STATUS)}")
        for name, value in (("seconds", seconds), ("cost", seconds if cost is None else cost)):
            if not (math.isfinite(value) and value >= 0.0):
                raise ScenarioError(f"tell: {name} is {value!r}; expected a finite number of seconds, 0 or more")
        request = RunRequest(run.config, run.position, run.captime, run.attempt)
        if request not in self._evidence.under_way():
            raise ScenarioError(f"{run} was not asked for, or was told already; tell every run once")
        if self._path is not None and cost is not None and cost != seconds:
            raise ScenarioError(
                f"tell: cost is {cost!r} and seconds is {seconds!r}; a ledger records one time for each run, which is "
                "what it cost. Leave cost out"
            )
        seen_ns = time.monotonic_ns() - self._asked_ns.pop(request, self._began_ns)
        outcome = outcome_told(request, _STATUS[how], float(seconds), cost, seen_ns)
        self._journal.observed([outcome], ())
        tell_all(self._procedure, self._evidence, [outcome], ())
        self._write_down()

    def _write_down(self) -> None:
        if self._recorder is not None:
            self._recorder.certificate(self._procedure, self._evidence, self._seconds)
            self._recorder.candidates(self._procedure, self._evidence)

    @property
    def _seconds(self) -> float:
        """Return the wall-clock seconds since this object was made."""
        return (time.monotonic_ns() - self._began_ns) / 1e9

    @property
    def pending(self) -> list[RequestedRun]:
        """Runs that were asked for and not told yet, oldest first; after a restart, those of before it."""
        return [self._run(request) for request in self._evidence.under_way()]

    # ------------------------------------------------------------------ what is known

    @property
    def certificate(self) -> Certificate:
        """What is certain now."""
        return self._procedure.certificate()

    @property
    def best(self) -> Any:
        """The recommended configuration, as given; on a space, its settings."""
        return self._settings(self.certificate.config)

    @property
    def best_name(self) -> str:
        """Name of the recommended configuration."""
        return self._question.configs[self.certificate.config].name

    @property
    def finished(self) -> str | None:
        """Why nothing more is wanted; None while there is something to run."""
        return self._procedure.finished()

    def __repr__(self) -> str:
        """Return one line: how far it is."""
        held, under_way = self.certificate, self._evidence.in_flight
        told = int(self._evidence.tally.runs.sum()) - under_way
        return (
            f"<AskTell: {self.best_name!r}, epsilon {held.epsilon:.4f}, delta {held.delta:g}, "
            f"{told:,} runs told, {under_way} under way>"
        )

    def verify(self) -> Audit:
        """Derive the newest certificate again from the rows of the ledger alone, as `captime verify` does."""
        if self._path is None:
            raise ScenarioError("verify: this campaign has no ledger; give AskTell one, such as ledger='mine.ledger'")
        if self._ledger is not None:
            self._ledger.flush()
        return audit(self._path)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Close the ledger in good order; the same call of `AskTell` resumes later. Without a ledger: nothing."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            self._write_down()
            ledger.noted(
                "stopped",
                because=self.finished or "interrupted",
                wall_seconds=self._clock + self._seconds,
            )
            ledger.close()
            self._journal, self._recorder = _Closed(), None

    def __enter__(self) -> Self:
        """Return the campaign; leaving the block closes its ledger."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the ledger."""
        self.close()


class _AskedBefore:
    """What a ledger has been asked, taken down while it is read."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.frontier = 0
        self.events = 0

    def reading(self, story: Iterable[Event]) -> Iterator[Event]:
        for event in story:
            self.events += 1
            if isinstance(event, Started):
                self.frontier = max(self.frontier, *(request.instance + 1 for request in event.requests))
            yield event


class _Closed(NoJournal):
    """Refuses what would not be recorded any more."""

    def asked(self, slots: int, orders: object) -> None:
        """Refuse it."""
        raise _closed(f"ask, {slots} at once, for {orders}")

    def started(self, requests: object) -> None:
        """Refuse it."""
        raise _closed(f"ask for {requests}")

    def observed(self, outcomes: object, seen: object) -> None:
        """Refuse it."""
        raise _closed(f"tell {outcomes}, {seen}")


def _closed(what: str) -> ScenarioError:
    return ScenarioError(f"AskTell: {what}: the ledger is closed; call AskTell again with the same ledger to resume")


def _forget(rows: Sequence[object]) -> None:
    """Write nothing: there is no ledger."""
