"""Reasons to stop a campaign, whatever is certified: each looks at what came back, and may warn or object."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, assert_never

import numpy as np

from captime.campaign.result import OutcomeCounts
from captime.certificate import Population
from captime.errors import ScenarioDiffers, ScenarioError, TargetProgramError
from captime.executors.protocol import Executor
from captime.ledger.rows import ConfigRow
from captime.programs.judge import AnswerBook
from captime.programs.protocol import Program
from captime.runs import Halt, RunOutcome, RunRequest, Status, Verdict
from captime.streams.finite import InstanceStream
from captime.utilities.formula import Utility

Note = Callable[..., None]
_log = logging.getLogger("captime")

HOPELESS, UNANSWERED = "hopeless", "unanswered"
"""Why a campaign ended, as its ledger says it: every run came to nothing; none had answered by the end."""

# After this many runs, none of which came anywhere near an answer, the program is taken to be unusable.
_HOPELESS = 20
# Most of a space may be useless: there this many configurations have to fail instead, or this many runs.
_HOPELESS_CONFIGURATIONS, _HOPELESS_ANYWAY = 25, 400
# Others may have been cut so far; but most must have failed.
_MOST_OF_A_SPACE = 0.75


class AbortRules:
    """Looks at outcomes and objects by raising, after writing down why.

    Args:
        program: For the command line shown to people.
        stream: Which instance a position stands for.
        configs: Names of the configurations.
        note: Writes an event down, as `note(kind, **facts)`.
        book: Compares answers; None to continue although two configurations contradict each other.
        drawn: Whether configurations are drawn from a space. A few that fail say little of the others then.
        clock: Which time counts, `cpu` or `wall`.
    """

    def __init__(
        self,
        program: Program,
        stream: InstanceStream,
        configs: Sequence[ConfigRow],
        note: Note,
        book: AnswerBook | None,
        *,
        drawn: bool = False,
        clock: str = "cpu",
    ) -> None:
        self._program = program
        self._stream = stream
        self._configs = configs
        self._note = note
        self._book = book
        self._drawn = drawn
        self._clock = clock
        self._looked_at = self._idle = 0
        self._answered = False
        self._failed: Counter[int] = Counter()
        self._cut: set[int] = set()
        self._only_guarded = True
        self._last: RunOutcome | None = None

    def __call__(self, outcomes: Sequence[RunOutcome]) -> None:
        """Look at what came back, which is written down already."""
        for outcome in outcomes:
            self._stop_at_once(outcome)
            self._compare_answers(outcome)
        self._check_hopeless(outcomes)
        self._notice_waiting(outcomes)

    def recall(self, outcomes: Sequence[RunOutcome]) -> None:
        """Take in outcomes of earlier calls: a contradiction among them is still one."""
        for outcome in outcomes:
            self._compare_answers(outcome)
            self._answered = self._answered or outcome.status.meaning.answered
            self._last = outcome if outcome.status.meaning.never else self._last
            self._looked_at += outcome.status.meaning.counts

    def _stop_at_once(self, outcome: RunOutcome) -> None:
        if outcome.halt is None:
            return
        self._note("stopped", because=outcome.detail)
        match outcome.halt:
            case Halt.FILE_CHANGED:
                self._file_changed(outcome)
            case Halt.ABORTED | Halt.NOT_STARTED | Halt.PATTERN_TOO_SLOW:
                raise TargetProgramError(f"{outcome.detail}. {self._how_started(outcome)}{_final_output(outcome)}")
            case Halt.SUPERVISOR_HELD:
                name = self._configs[outcome.request.config].name
                raise TargetProgramError(
                    f"configuration {name!r}: {outcome.detail}. That has happened before in this campaign, so the "
                    "program is taken to do it: it must neither stop nor trace the process that started it. "
                    f"{self._how_started(outcome)}. Repair the program, or find out what else on this machine stops "
                    "processes; the same command resumes"
                )
            case _:
                assert_never(outcome.halt)

    def _file_changed(self, outcome: RunOutcome) -> NoReturn:
        path = outcome.changed_file
        if path != self._stream.at(outcome.request.instance).instance.path:
            raise ScenarioDiffers(
                f"{path} changed while the campaign was running. Runs made with it so far stand; the run under way "
                "does not count. Put the old program back to resume, or begin a new ledger with the new one"
            )
        raise TargetProgramError(
            f"{path} changed or vanished while the campaign was running; the run under way does not count. "
            "Put the instance back as it was to resume"
        )

    def _compare_answers(self, outcome: RunOutcome) -> None:
        """Two configurations that contradict each other: one of them is wrong, and it is unknown which."""
        if self._book is None or not outcome.status.meaning.answered or outcome.measured is None:
            return
        instance = self._stream.at(outcome.request.instance).instance.name
        found = self._book.note(instance, outcome.request.config, outcome.measured.answer)
        if found is None:
            return
        names = [self._configs[config].name for config in (found.first, found.second)]
        self._note("conflict", instance=instance, configs=names)
        raise TargetProgramError(
            f"on instance {found.instance!r} {names[0]} answered {found.first_answer!r} and {names[1]} answered "
            f"{found.second_answer!r}; one of them is wrong, so nothing is certified. Give the right answers "
            "(instances.answers), a verifier (target.verifier), or leave the wrong configuration out"
        )

    def _check_hopeless(self, outcomes: Sequence[RunOutcome]) -> None:
        """Stop early if whatever the program is given comes to nothing; a cut run alone says nothing against it."""
        for outcome in outcomes:
            self._remember(outcome)
        last = self._last
        if self._answered or last is None or not self._hopeless():
            return
        self._note("stopped", because=HOPELESS)
        failed = sum(self._failed.values())
        if self._only_guarded:
            raise TargetProgramError(
                f"the wall-clock guard stopped {failed} runs, and none answered; the last one so: {last.detail}. "
                f"{self._how_started(last)}. A program that waits, for a server or for other processes, uses little "
                'CPU time: set clock = "wall" in [target] to measure it by the clock on the wall, or raise '
                "target.wall_factor if the machine is too busy"
            )
        whole = f"{failed} runs failed and none answered" if self._cut else f"the first {failed} runs all failed"
        raise TargetProgramError(
            f"{whole}, the last one so: {last.detail or 'no answer'}. {self._how_started(last)}{_final_output(last)}. "
            f"{_if_it_answered(last)}`captime doctor` looks into it"
        )

    def _notice_waiting(self, outcomes: Sequence[RunOutcome]) -> None:
        """Warn once if most of the first runs slept, and CPU time is what counts; that is no reason to stop."""
        if self._clock != "cpu" or self._looked_at >= _HOPELESS:
            return
        measured = [outcome.measured for outcome in outcomes if outcome.measured and outcome.status.meaning.counts]
        self._looked_at += len(measured)
        self._idle += sum("idle" in each.flags for each in measured)
        if self._looked_at >= _HOPELESS and 2 * self._idle > self._looked_at:
            self._note("waits", idle=self._idle, runs=self._looked_at)
            _log.warning(
                "captime: %d of the first %d runs slept most of their time, and are measured by their CPU time; if "
                'waiting counts, stop and set clock = "wall" in [target]',
                self._idle,
                self._looked_at,
            )

    def _remember(self, outcome: RunOutcome) -> None:
        """Count what came to nothing, until the first answer."""
        guarded = outcome.verdict is Verdict.WALL
        match outcome.status:
            case Status.COMPLETED:
                self._answered = True
            case Status.CAPPED | Status.ABANDONED if not guarded:
                self._cut.add(outcome.request.config)
            case Status.FAILED | Status.CAPPED | Status.ABANDONED:
                self._failed[outcome.request.config] += 1
                self._only_guarded = self._only_guarded and guarded
                self._last = outcome
            case Status.LOST:
                pass
            case _:
                assert_never(outcome.status)

    def _hopeless(self) -> bool:
        """Return whether enough has failed: runs of every configuration in a list; of a space, most that were tried."""
        failed, runs = len(self._failed), sum(self._failed.values())
        others = len(self._cut - self._failed.keys())
        if not self._drawn:
            return runs >= _HOPELESS and not others
        most = failed >= _MOST_OF_A_SPACE * (failed + others)
        return most and (failed >= _HOPELESS_CONFIGURATIONS or runs >= _HOPELESS_ANYWAY)

    def at_the_end(self, census: OutcomeCounts, *, in_time: bool = True) -> None:
        """Refuse to call it a success if no run ever answered, in this call or an earlier one.

        Args:
            census: What became of all its runs.
            in_time: Whether it came to its end; if not, runs that were only cut might have answered later.
        """
        if census.answered or not census.judged or not (in_time or self._last):
            return
        self._note("stopped", because=UNANSWERED)
        said = ", ".join(f"{count:,} {word}" for word, count in census.verdicts.most_common())
        last, example = self._last, ""
        if last is not None:
            words = f"{self._how_started(last)}{_final_output(last)}"
            example = f" One that failed: {last.detail or 'no answer'}. {words}."
        raise TargetProgramError(
            f"not one of {census.counted:,} runs answered ({said}), so there is nothing to certify.{example} Compare "
            "target.answer and target.exit_codes with what the program prints and returns, take away a time limit of "
            "its own, or choose a utility that falls later; `captime doctor` looks into it"
        )

    def _how_started(self, outcome: RunOutcome) -> str:
        element = self._stream.at(outcome.request.instance)
        return self._program.how_started(outcome.request.config, element.instance, element.seed)


def _if_it_answered(outcome: RunOutcome) -> str:
    """Return what to set if an exit code that was not accepted means an answer, as those of SAT solvers do."""
    code = None if outcome.measured is None else outcome.measured.exit_code
    if outcome.verdict is not Verdict.CRASH or not code or code < 2:
        return ""
    return f"If exit code {code} means an answer, add it to target.exit_codes (--exit-codes of captime compare); "


def _final_output(outcome: RunOutcome) -> str:
    """Return what the program said last, if anything."""
    measured = outcome.measured
    said = b"" if measured is None else (measured.stderr_tail or measured.stdout_tail)
    text = said.decode("utf-8", "replace").strip()
    return f"; it said: {text[-400:]!r}" if text else ""


# Check that a program takes the same time again with the same seed, before a procedure relies on it.

# Pairs of runs, and by which factor the two of a pair may differ on a busy machine.
PAIRS = 5
_FACTOR = 2.0
# Trial runs are stopped where an answer is worth this, and after this many seconds at the latest.
_LITTLE_WORTH, _LONGEST_TRIAL = 0.1, 16.0
# One pair of trial runs for this many runs of the whole matrix.
_RUNS_PER_PAIR = 20
# Below this a difference is start-up and clock, not the program.
_SECONDS = 0.05
# The trial's attempts are numbered from here, far from any that counts.
_TRIAL = 1_000_000


@dataclass(frozen=True, slots=True)
class Repeatability:
    """What the trial found.

    Attributes:
        pairs: Times of the first and the second run, of pairs in which at least one ended by itself; a capped run took
            at least its captime, and that is the time told.
        differ: How many pairs differ by more than noise explains.
    """

    pairs: tuple[tuple[float, float], ...]
    differ: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return self.differ <= len(self.pairs) // 4


def trial_captime(utility: Utility, ceiling: float) -> float:
    """Return how many seconds a trial run gets: until an answer is worth little, and not for long in any case."""
    return min(_LONGEST_TRIAL, ceiling, float(utility.inverse(np.array(_LITTLE_WORTH))))


def pairs_for(n_instances: int | None, n_configs: int) -> int:
    """Return how many pairs of runs a trial makes: fewer where all runs of a campaign are few."""
    if n_instances is None:
        return PAIRS
    return min(max(n_configs * n_instances // _RUNS_PER_PAIR, min(2, n_configs)), PAIRS)


def try_twice(executor: Executor, captime: float, n_pairs: int = PAIRS, n_configs: int = 1) -> Repeatability:
    """Make a few runs of the first configurations twice each; nothing of it counts.

    Args:
        executor: Idle slots of the program.
        captime: For each of these runs, in seconds.
        n_pairs: How many runs are made twice.
        n_configs: How many configurations take turns.
    """
    requests = [
        RunRequest(position % n_configs, position, captime, _TRIAL + again)
        for position in range(n_pairs)
        for again in (0, 1)
    ]
    executor.submit(requests)
    found: dict[RunRequest, RunOutcome] = {}
    while len(found) < len(requests) and (outcomes := executor.collect()):
        found |= {outcome.request: outcome for outcome in outcomes}
    pairs = [
        (found[first], found[second])
        for first, second in zip(requests[::2], requests[1::2], strict=True)
        if first in found and second in found
    ]
    # A capped run may have been about to end: the time at which it was cut is all that it says.
    told = tuple(
        (first.runtime, second.runtime)
        for first, second in pairs
        if first.status.meaning.counts and second.status.meaning.counts
        if not (first.status.meaning.unfinished and second.status.meaning.unfinished)
    )
    return Repeatability(told, sum(_differ(*pair) for pair in told))


def _differ(first: float, second: float) -> bool:
    shorter, longer = sorted((first, second))
    return longer > _FACTOR * shorter + _SECONDS


def refuse_if_not(found: Repeatability, procedure: str, population: Population = Population.DRAWN) -> None:
    """Refuse a procedure that repeats runs if the program was seen not to repeat itself."""
    if not found.holds:
        shown = ", ".join(f"{first:.3g} s and {second:.3g} s" for first, second in found.pairs[:3])
        if population is Population.THESE:
            raise ScenarioError(
                "the claim about exactly these instances needs runs that take the same time again with the same seed, "
                f"but {found.differ} of {len(found.pairs)} pairs differ: {shown}. Set instances.population = 'drawn', "
                "or target.repeatable = true if it does repeat itself"
            )
        raise ScenarioError(
            f"procedure {procedure} repeats cut runs with longer captimes, but the program did not take the same time "
            f"again with the same seed ({found.differ} of {len(found.pairs)} pairs differ: {shown}). Set "
            "target.repeatable = false and use procedure race, which then makes every run once; or set "
            "target.repeatable = true if it does repeat itself"
        )
