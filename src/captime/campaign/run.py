"""A campaign from beginning to end: ledger, slots, procedure, and the loop in which they meet."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from captime.arrays import FloatArray
from captime.campaign.abort_rules import AbortRules, pairs_for, refuse_if_not, trial_captime, try_twice
from captime.campaign.changes import Change, GoalsInOrder, GrowingProcedure, SpaceMembers
from captime.campaign.identity import (
    Growth,
    check_identity,
    remembered,
)
from captime.campaign.journal import (
    LedgerJournal,
    LedgerWatchingExecutor,
    OrdersJournal,
    Recorder,
    check_no_rescue,
    with_what_was_lost,
)
from captime.campaign.result import CampaignResult, OutcomeCounts
from captime.campaign.resume import (
    RecordedRuns,
    ReplayingExecutor,
    Steering,
    first_asked,
    new_changes,
    note_lessons,
    resume_campaign,
    write_off,
)
from captime.campaign.transfer import EarlierCampaigns, learned_words
from captime.certificate import Population
from captime.errors import CaptimeError, LedgerError, MachineUnfit, ScenarioError
from captime.evidence import Evidence
from captime.executors.local import LocalExecutor
from captime.executors.protocol import Executor, Remote, Visible
from captime.executors.retry import FixedOrderExecutor, LossLimit, Unfit, WaitingExecutor
from captime.ledger import Ledger, LedgerReader
from captime.ledger.connection import crash_point
from captime.ledger.ownership import SlotBoard
from captime.ledger.rows import Noted
from captime.live import Journal, LiveOutcome, Observer, drive_parallel
from captime.procedures.protocol import Procedure
from captime.procedures.survey import Survey
from captime.programs.judge import AnswerBook
from captime.programs.protocol import Program, SeedTaker
from captime.runs import never
from captime.scenario.spec import CampaignQuestion, RunSettings
from captime.spaces import Proposer
from captime.supervision.scratch import own_tag, sweep, sweep_abandoned
from captime.tally import Tally

MakeExecutor = Callable[[Program, str], Executor]
"""`make(program, tag)`: slots for that program, whose processes carry that tag."""


# Ends that say nothing about the program: it might have answered if it had been given the time.
_CUT_SHORT = ("interrupted", "cluster", "ledger", "machine")
_OUT_OF_TIME = ("budget", "deadline")
# Up to this share of the scores of a configuration is little.
_LITTLE_OPEN = 0.1


def run_campaign(
    question: CampaignQuestion,
    path: Path,
    manner: RunSettings | None = None,
    *,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = never,
    make_executor: MakeExecutor | None = None,
    earlier: EarlierCampaigns | None = None,
) -> CampaignResult:
    """Begin a campaign, or resume the one in this ledger, until its goal is reached or a rule stops it.

    Args:
        question: What is asked.
        path: The ledger.
        manner: How it is carried out.
        observer: Called after every lap.
        interrupted: Asked before every lap; True stops with the certificate held so far.
        make_executor: Where runs happen; slots on this machine if it is left out.
        earlier: On a space, earlier campaigns from which the model, and nothing else, learns.
    """
    manner = manner or RunSettings()
    first = question.build()
    if first.plan.repeats and not question.program.repeatable:
        raise ScenarioError(
            f"procedure {question.procedure} repeats cut runs with longer captimes, but this program does not say that "
            "it takes the same time again: it is not given the seed. Use procedure race, which makes every run once, "
            "pass the seed on ({seed} in a command, a parameter called seed of a function), or set target.repeatable = "
            "true if it is deterministic"
        )
    make = make_executor or executors_here(manner)
    relied_on = first.plan.repeats or question.population is Population.THESE
    if relied_on and manner.check_repeatability and not path.exists():
        question = _with_repeatability(question, make)
    check_no_rescue(path)
    growth, clock = Growth(), 0.0
    if path.exists():
        with LedgerReader(path) as reader:
            growth, clock = check_identity(reader, question), reader.clock()
    result: CampaignResult | None = None
    try:
        with _ledger_for(question, path, manner) as ledger, SlotBoard(path, ledger.campaign_id) as board:
            sweep(ledger.campaign_id)
            sweep_abandoned()
            inner = make(question.program, ledger.campaign_id)
            if isinstance(inner, Remote):
                inner.tell_events(ledger.noted, ledger.observed)
            if isinstance(inner, Visible):
                inner.show_on(board)
            try:
                campaign = _Campaign(question, ledger, inner, manner, growth=growth, earlier=earlier, clock=clock)
                result = campaign.run(observer, interrupted)
            finally:
                inner.close()
    except LedgerError as error:
        if result is None:
            raise
        result = replace(result, trouble=result.trouble or error)
    # Closing it in good order is a row too.
    return with_what_was_lost(replace(result, head=ledger.head), ledger)


def _with_repeatability(question: CampaignQuestion, make: MakeExecutor) -> CampaignQuestion:
    """Return the question that a program can answer; one that is refused here leaves nothing behind.

    A claim about exactly these instances that the user has not asked for becomes one about draws if the program does
    not repeat itself: then every run is made once.
    """
    trial = make(question.program, own_tag("trial"))
    try:
        captime = trial_captime(question.utility, question.ceiling)
        found = try_twice(trial, captime, pairs_for(question.stream.length, len(question.configs)))
    finally:
        trial.close()
    program = question.program
    seeded = not isinstance(program, SeedTaker) or program.seeded
    # Without the seed only trial runs can show that a program repeats itself.
    shown = found.holds and (seeded or bool(found.pairs))
    if not shown and question.population is Population.THESE and not question.population_said:
        once = replace(question.about_draws(), short_captimes=False)
        return once if seeded else once.with_runs_made_once()
    if not shown and question.procedure == "pool" and question.population is Population.DRAWN:
        # A search stops first runs early where it can, and makes every run once where it cannot.
        return replace(question, short_captimes=False)
    refuse_if_not(found, question.procedure, question.population)
    return question


@contextmanager
def _ledger_for(question: CampaignQuestion, path: Path, manner: RunSettings) -> Iterator[Ledger]:
    if path.exists():
        with Ledger.open(path, take_over=manner.take_over) as ledger:
            yield ledger
    else:
        with Ledger.create(path, remembered(question), question.configs) as ledger:
            yield ledger


def executors_here(manner: RunSettings) -> MakeExecutor:
    """Return what makes slots on this machine."""

    def make(program: Program, tag: str) -> Executor:
        # One more request in hand per two slots: a slot that falls free begins at once, while the outcome is written.
        ahead = max(1, manner.jobs // 2)
        return LocalExecutor(program, manner.jobs, tag=tag, pin=manner.pin, ahead=ahead, isolation=manner.isolation)

    return make


class _Campaign:
    """The parts of a running campaign.

    The campaign's recorded clock continues where earlier calls left it (`clock`), as its CPU time does.
    Stop rules count the seconds of this call: a deadline that passed yesterday does not count.
    """

    def __init__(
        self,
        question: CampaignQuestion,
        ledger: Ledger,
        inner: Executor,
        manner: RunSettings,
        *,
        growth: Growth,
        earlier: EarlierCampaigns | None,
        clock: float,
    ) -> None:
        self._clock = clock
        self._growth = growth
        self._earlier = earlier
        self._question = question
        self._ledger = ledger
        self._inner = inner
        self._manner = manner
        self._census = OutcomeCounts()
        watched = (
            LedgerWatchingExecutor(inner, ledger.looked_lost) if isinstance(inner, LocalExecutor | Remote) else inner
        )
        repeatable = question.program.repeatable
        self._waiting = WaitingExecutor(watched, manner.patience, ledger.noted, repeatable=repeatable)
        self._losses = LossLimit(self._waiting, repeatable=repeatable)
        book = AnswerBook(question.tolerance) if manner.conflicts else None
        drawn = question.proposer is not None
        self._objections = AbortRules(
            question.program, question.stream, question.configs, ledger.noted, book, drawn=drawn, clock=question.clock
        )
        self._memory = RecordedRuns(self._census, self._objections, self._losses)
        self._learned: list[Noted] = []
        self._recorder = Recorder(ledger, len(question.configs), clock)

    def run(self, observer: Observer | None, interrupted: Callable[[], bool]) -> CampaignResult:
        question, ledger = self._question, self._ledger
        procedure = self._fresh()
        evidence = Evidence(
            len(question.configs), procedure.plan, question.utility, repeatable=question.program.repeatable
        )
        roster = None
        if question.proposer is not None:
            roster = self._roster(question.proposer)
            procedure = GrowingProcedure(procedure, roster, evidence)
        steering = Steering(question, ledger, procedure, evidence, roster)
        executor, journal = self._recall(procedure, evidence, steering.apply)
        ledger.noted(
            "resumed" if self._memory.events else "began",
            jobs=self._manner.jobs,
            order=self._manner.order,
            scenario=question.source,
            captime=version("captime"),
        )
        self._learned = note_lessons(self._earlier, ledger, self._memory)
        procedure = self._changed(procedure, steering.apply)
        outcome = drive_parallel(
            procedure,
            executor,
            evidence,
            budget=self._manner.stop.cpu,
            deadline=self._inner.now + self._manner.stop.wall_seconds(datetime.now(tz=UTC).astimezone()),
            # How long a run has been seen by our clock says nothing about one whose own time counts.
            look_every=1.0 if question.time == "measured" else math.inf,
            observer=self._watching(observer),
            interrupted=lambda: interrupted() or self._must_stop,
            journal=journal,
        )
        return self._close(procedure, evidence, outcome)

    @property
    def _machines_are_gone(self) -> bool:
        return isinstance(self._inner, Remote) and bool(self._inner.gone)

    @property
    def _must_stop(self) -> bool:
        """Return whether the campaign must stop: machines or ledger are gone, or a machine stays unfit."""
        return self._machines_are_gone or self._ledger.looked_lost() or self._waiting.gave_up is not None

    def _recall(
        self, procedure: Procedure, evidence: Evidence, apply: Callable[[Change], None]
    ) -> tuple[Executor, Journal | None]:
        """Take up what the ledger knows, in the way that the order of telling demands."""
        question, ledger, memory = self._question, self._ledger, self._memory
        repeatable = question.program.repeatable
        in_order = self._manner.order == "fixed"
        journal = LedgerJournal(
            ledger,
            question.stream,
            (self._census.take, self._objections),
            orders=not in_order,
            before_start=lambda: self._recorder.facts(procedure),
        )
        if not in_order:
            resume_campaign(procedure, evidence, ledger, memory, repeatable=repeatable, apply=apply)
            return self._losses, journal
        for _ in memory.reading(ledger.replay()):
            pass
        write_off(ledger, memory, repeatable=repeatable)
        remembering = ReplayingExecutor(self._losses, journal, memory.known, memory.attempts)
        # A ledger of an earlier release has runs without orders; orders from the beginning must not follow them.
        unordered = bool(memory.attempts) and not memory.orders
        return FixedOrderExecutor(remembering, self._manner.window), None if unordered else OrdersJournal(
            ledger, memory.orders
        )

    def _fresh(self) -> Procedure:
        """Make the procedure as it was when the campaign began: with the first goals and the first stream length."""
        begun, length = first_asked(self._question, self._ledger)
        return begun.build(length)

    def _roster(self, proposer: Proposer) -> SpaceMembers:
        """On a space configurations come into being when they are asked for."""
        question, ledger = self._question, self._ledger
        return SpaceMembers(
            proposer, question.program, question.configs, ledger.configs, ledger.added, earlier=self._earlier
        )

    def _changed(self, procedure: Procedure, apply: Callable[[Change], None]) -> Procedure:
        """Return the procedure, with everything as it is asked for now."""
        changes = new_changes(self._question, self._ledger, self._memory, self._growth, self._fresh)
        if self._manner.order == "fixed":
            return GoalsInOrder(procedure, [*self._memory.changes, *changes], apply)
        for change in changes:
            apply(change)
        return procedure

    def _watching(self, observer: Observer | None) -> Observer:
        def watch(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
            crash_point("decided")
            self._recorder.certificate(procedure, evidence, executor.now)
            self._recorder.candidates(procedure, evidence)
            if observer is not None:
                observer(procedure, evidence, executor)

        return watch

    def _close(self, procedure: Procedure, evidence: Evidence, outcome: LiveOutcome) -> CampaignResult:
        crash_point("shutdown-begun")
        question = self._question
        if outcome.stopped == "interrupted" and self._machines_are_gone:
            outcome = replace(outcome, stopped="cluster")
        if outcome.stopped == "interrupted" and self._ledger.lost:
            outcome = replace(outcome, stopped="ledger")
        unfit = self._waiting.gave_up
        if outcome.stopped == "interrupted" and unfit is not None:
            outcome = replace(outcome, stopped="machine")
        self._recorder.certificate(procedure, evidence, outcome.wall_seconds)
        self._recorder.candidates(procedure, evidence)
        clock = self._clock + outcome.wall_seconds
        book = {"cpu_seconds_by_purpose": outcome.spending} if outcome.spending else {}
        self._ledger.noted("stopped", because=outcome.stopped, wall_seconds=clock, **book)
        trouble: CaptimeError | None = outcome.trouble
        try:
            self._ledger.flush()
        except LedgerError as error:
            trouble = trouble or error
        if unfit is not None:
            trouble = trouble or MachineUnfit(_why_unfit(unfit, question.names))
            if unfit.configs:
                raise trouble
        if trouble is None and outcome.stopped not in _CUT_SHORT and not isinstance(procedure, Survey):
            self._objections.at_the_end(self._census, in_time=outcome.stopped not in _OUT_OF_TIME)
        return CampaignResult(
            question=self._question,
            outcome=replace(outcome, certificate=procedure.certificate(), wall_seconds=clock),
            ledger=Path(self._ledger.path),
            head=self._ledger.head,
            census=self._census,
            bound=procedure.bound,
            repeats=procedure.plan.repeats,
            isolation=str(getattr(self._inner, "isolation", "none")),
            jobs=self._inner.most_slots if isinstance(self._inner, Remote) else self._manner.jobs,
            place=self._inner.place if isinstance(self._inner, Remote) else "",
            order=self._manner.order,
            resumed=self._memory.events > 0,
            learned=learned_words(self._learned) if self._learned else "",
            warnings=tuple(self._ledger.warnings[-1:]),
            trouble=trouble,
            means=mean_scores(evidence.tally),
            rescued=self._ledger.rescue() if self._ledger.is_lost() else None,
        )


def mean_scores(tally: Tally) -> FloatArray:
    """Return what each configuration seems to be worth; not a number without runs.

    A little that is open, as runs that were cancelled at the end are, is left out: half a point for each of them would
    hide that every answer of a short campaign is worth 1. Where much is open, the middle of what is possible is taken.
    """
    n = np.maximum(tally.n - tally.skipped, 1)
    still_open = tally.utility_high - tally.utility_low
    known = np.maximum(n - still_open, 1.0 - _LITTLE_OPEN)
    middle = (tally.utility_low + tally.utility_high) / 2.0 / n
    means = np.where(still_open <= _LITTLE_OPEN * n, tally.utility_low / known, middle)
    return np.where(tally.n > tally.skipped, means, np.nan)


def _why_unfit(unfit: Unfit, names: Sequence[str]) -> str:
    """Why the campaign stopped, and what to do, in words."""
    if not unfit.configs:
        return (
            f"the machine stays unfit, so the campaign stopped; the last run came back so: {unfit.words}. No run was "
            "judged by it. Free what the machine is out of, and run the same command again to resume"
        )
    named = " and ".join(repr(names[config]) for config in unfit.configs)
    verb = "was" if len(unfit.configs) == 1 else "were"
    return (
        f"configuration {named} {verb} lost again and again, each time after the machine had been fit again; the last "
        f"run came back so: {unfit.words}. Nothing is certified by that. Give the machine more room, use fewer jobs, "
        "leave the configuration out, or set target.disk_limit, target.memory or target.processes: a run that exceeds "
        "a limit of its own counts as failed"
    )
