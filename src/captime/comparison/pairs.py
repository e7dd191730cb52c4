"""Statements about two commands from their runs on the same stream positions, valid whenever one looks.

docs/ci.md has the argument. In short: the difference of two scores on one position has the difference of the expected
utilities as its mean, whatever the two have in common; mixture betting bounds that mean at all times at once; a run
that is not settled counts as the end of its interval that hurts the statement.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import mixture_lower, sine_nodes
from captime.certificate import Orders, no_orders
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.procedures import REGISTERS, Problem
from captime.procedures.problem import build_procedure
from captime.procedures.protocol import Procedure, ProcedureWrapper
from captime.report.known_runs import KnownRuns, known_runs, lottery_of, score_ends
from captime.scenario.spec import CampaignQuestion
from captime.tally import Tally
from captime.utilities import Utility

BASE, CANDIDATE = 0, 1
"""Indices of the two commands: the first is the one that is there already, the second is the one to be judged."""

_LARGEST_SHARE = 10.0
_CHUNK = 4096
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Intervals of the scores of two commands on the same positions; row 0 is the first command.

    Attributes:
        low: Low ends, shape (2, positions).
        high: High ends.
    """

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return int(self.low.shape[1])

    def difference(self, log_inverse: float) -> tuple[float, float]:
        """Return bounds on the second command's expected utility minus the first's, each with its own failure.

        Args:
            log_inverse: ln(1 / failure probability) of each of the two bounds.
        """
        if not len(self):
            return -1.0, 1.0
        low = mixture_lower(self.combined(CANDIDATE, 1.0, 1.0), log_inverse)
        high = mixture_lower(self.combined(BASE, 1.0, 1.0), log_inverse)
        return 2.0 * low - 1.0, 1.0 - 2.0 * high

    def combined(self, better: int, plus: float, minus: float) -> FloatArray:
        """Return what speaks for one command, run by run, in [0, 1]: its low ends against the other's high ends.

        The mean is at most (minus + plus·U - minus·U') / (plus + minus), with U and U' the expected utilities of this
        command and of the other.

        Args:
            better: Index of this command.
            plus: Weight of its scores.
            minus: Weight of the other's scores.
        """
        for_it, against_it = self.low[better], self.high[1 - better]
        return np.asarray(np.clip((minus + plus * for_it - minus * against_it) / (plus + minus), 0.0, 1.0))


def first_crossing(samples: FloatArray, q: float, log_inverse: float) -> float:
    """Return after how many samples mixture betting has refuted that their mean is at most q; infinity for never.

    The wealth after m samples is the mean of the products of 1 - b + b·x/q over the shares b that are bet. If the mean
    of the samples is at most q, no factor gains on average, and the wealth ever reaches 1/alpha with probability at
    most alpha, whatever m one stops at.

    Args:
        samples: In [0, 1], in the order of the positions.
        q: In (0, 1).
        log_inverse: ln(1 / alpha).
    """
    shares = sine_nodes()
    won, reached = np.zeros(len(shares)), 0
    for start in range(0, len(samples), _CHUNK):
        factors = 1.0 - shares + np.multiply.outer(samples[start : start + _CHUNK] / q, shares)
        with np.errstate(divide="ignore"):
            won = won + np.cumsum(np.log(factors), axis=0)
        top = won.max(axis=1)
        wealth = top + np.log(np.exp(won - top[:, None]).mean(axis=1))
        # What rounding can have added in sums of this many terms is taken off.
        over = np.flatnonzero(wealth >= log_inverse + _ROUNDING * (1 + len(samples)))
        if len(over):
            return reached + int(over[0]) + 1
        reached, won = reached + len(factors), won[-1]
    return math.inf


def paired_scores(runs: KnownRuns, low: FloatArray, high: FloatArray) -> PairedScores:
    """Return the scores of configurations 0 and 1 on every position before the first that one of them lacks.

    No position inside is left out, so it does not matter why the next one is missing: it is not run yet, it is under
    way, or it was lost.

    Args:
        runs: By configuration and then by position.
        low: Low ends of the scores of these runs.
        high: High ends.
    """
    first, second, end = runs.bounds(2).tolist()
    length = min(_unbroken(runs, first, second), _unbroken(runs, second, end))
    rows = [slice(start, start + length) for start in (first, second)]
    return PairedScores(np.stack([low[row] for row in rows]), np.stack([high[row] for row in rows]))


def _unbroken(runs: KnownRuns, start: int, end: int) -> int:
    """Return how many positions from 0 on are there without a gap."""
    return int(np.count_nonzero(runs.position[start:end] == np.arange(end - start)))


class GateVerdict(StrEnum):
    """What is certified about the candidate."""

    NOT_WORSE = "not-worse"
    WORSE = "worse"
    UNDECIDED = "undecided"


class Difference(StrEnum):
    """What is certified about a difference of at least a given share."""

    FIRST = "first"
    SECOND = "second"
    NEITHER = "neither"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Gate:
    """Is the second command worse than the first?

    The verdict is a function of the runs alone: the statement that is reached on the shorter prefix of the positions.

    Attributes:
        margin: It may be worth this much less and still count as not worse.
        delta: Allowed probability that the verdict is wrong.
        low: Lower bound on the candidate's expected utility minus the base's; wrong with probability delta at most.
        high: Upper bound on it, likewise.
        n: Positions that both were run on.
        verdict: What is certified.
    """

    margin: float
    delta: float
    low: float = -1.0
    high: float = 1.0
    n: int = 0
    verdict: GateVerdict = GateVerdict.UNDECIDED

    def __post_init__(self) -> None:
        if not 0.0 < self.margin < 1.0:
            raise ScenarioError(
                f"not-worse-by is {self.margin:g}; expected a margin of expected utility above 0 and below 1, such as "
                "0.02: how much less the second command may be worth"
            )

    @property
    def decided(self) -> bool:
        """Whether no further run is needed."""
        return self.verdict is not GateVerdict.UNDECIDED

    def after(self, pairs: PairedScores) -> "Gate":
        """Return what these runs say.

        Each statement has the whole delta: a candidate that is worth less than the margin allows can only be wrongly
        cleared, one that is worth at least as much as the base only wrongly blamed, and no other verdict is wrong.
        """
        level = -math.log(self.delta)
        not_worse = first_crossing(pairs.combined(CANDIDATE, 1.0, 1.0), (1.0 - self.margin) / 2.0, level)
        worse = first_crossing(pairs.combined(BASE, 1.0, 1.0), 0.5, level)
        low, high = pairs.difference(level)
        verdict = GateVerdict.UNDECIDED
        if not_worse <= worse and math.isfinite(not_worse):
            verdict, low = GateVerdict.NOT_WORSE, max(low, -self.margin)
        elif math.isfinite(worse):
            verdict, high = GateVerdict.WORSE, min(high, 0.0)
        return Gate(self.margin, self.delta, low, high, len(pairs), verdict)


@dataclass(frozen=True, slots=True)
class WorthMore:
    """Is one of two commands worth at least a given share more than the other?

    Attributes:
        share: Such as 0.1 for 10 %.
        delta: Allowed probability that the verdict is wrong.
        n: Positions that both were run on.
        verdict: What is certified.
    """

    share: float
    delta: float
    n: int = 0
    verdict: Difference = Difference.UNDECIDED

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= _LARGEST_SHARE:
            raise ScenarioError(
                f"at-least is {100 * self.share:g} %; expected more than 0 % and at most {100 * _LARGEST_SHARE:g} %, "
                "such as 10%"
            )

    @property
    def decided(self) -> bool:
        """Whether no further run is needed."""
        return self.verdict is not Difference.UNDECIDED

    def after(self, pairs: PairedScores) -> "WorthMore":
        """Return what these runs say; each of the two commands has half of delta."""
        first, second = self._worth_more(pairs, BASE), self._worth_more(pairs, CANDIDATE)
        verdict = Difference.UNDECIDED
        if first:
            verdict = Difference.FIRST
        elif second:
            verdict = Difference.SECOND
        elif first is False and second is False:
            verdict = Difference.NEITHER
        return WorthMore(self.share, self.delta, len(pairs), verdict)

    def _worth_more(self, pairs: PairedScores, which: int) -> bool | None:
        """Return whether a command is worth that much more than the other; None while that is open."""
        factor, level = 1.0 + self.share, math.log(2.0 / self.delta)
        # U >= factor·U' says that the mean of the first samples is at least q, and that of the second at most 1 - q.
        q = factor / (1.0 + factor)
        yes = first_crossing(pairs.combined(which, 1.0, factor), q, level)
        no = first_crossing(pairs.combined(1 - which, factor, 1.0), 1.0 - q, level)
        if math.isinf(yes) and math.isinf(no):
            return None
        return yes <= no


# A question about two commands, asked of the ledger while the runs are made: it stops the campaign when decided.

Decision = Gate | WorthMore
DECIDED = "decided"
"""Why such a campaign stops."""
# A look takes at most this share of the time, and there are at most four a second.
_LOOK_SHARE, _SECONDS_BETWEEN_LOOKS = 0.1, 0.25


class Watch:
    """Looks at the ledger of a campaign now and then.

    Calling it before a lap of the campaign looks if a look is due, and tells whether the user wants an end.

    Args:
        decision: The question, with nothing known yet.
        path: The ledger, which may not exist yet.
        utility: What an answer is worth.
        interrupted: Whether the user wants an end.

    Attributes:
        decision: What is known now.
    """

    def __init__(self, decision: Decision, path: Path, utility: Utility, interrupted: Callable[[], bool]) -> None:
        self.decision = decision
        self._path = path
        self._utility = utility
        self._interrupted = interrupted
        self._next = 0.0

    def __call__(self) -> bool:
        """Look if a look is due; True once the user wants an end."""
        now = time.monotonic()
        if now >= self._next and not self.decision.decided and self._path.exists():
            self.look()
            took = time.monotonic() - now
            self._next = now + max(_SECONDS_BETWEEN_LOOKS, took / _LOOK_SHARE)
        return self._interrupted()

    def at_the_end(self, record: Path) -> Decision:
        """Look once more, at every run there is.

        Args:
            record: The ledger, or the copy that was saved when the ledger was lost.
        """
        self._path = record
        return self.decision if self.decision.decided else self.look()

    def lines(self) -> Sequence[tuple[str, str]]:
        """Return what is known now, for the live view."""
        match self.decision:
            case Gate(low=low, high=high, n=n):
                return (("difference", f"{low:+.4f} to {high:+.4f}   from {n:,} pairs of runs"),)
            case WorthMore(n=n):
                return (("compared", f"{n:,} pairs of runs"),)

    def look(self) -> Decision:
        """Read the ledger as it is now."""
        with LedgerReader(self._path) as reader, reader.snapshot():
            runs = known_runs(reader.outcomes())
            lottery = lottery_of(reader.scenario, self._utility, len(reader.configs))
        if len(runs):
            self.decision = self.decision.after(paired_scores(runs, *score_ends(runs, self._utility, lottery)))
        return self.decision


class UntilDecided(ProcedureWrapper):
    """A procedure that asks for further pairs of runs after it has reached its own goal, until a question is decided.

    The engine is content once it knows which command to recommend. Whether the other one is worse by 0.02, or this one
    better by 10 %, takes more runs; each of them is on the next position of both commands, as the engine's own are.

    Args:
        procedure: Decides until it is content.
        problem: Its question.
        decided: Whether no further run is needed.
    """

    def __init__(self, procedure: Procedure, problem: Problem, decided: Callable[[], bool]) -> None:
        super().__init__(procedure)
        self._n_configs = problem.n_configs
        self._length = math.inf if problem.n_instances is None else problem.n_instances
        self._decided = decided
        self._positions = 0
        # From which position on the engine compares; what it has skipped before that stays skipped.
        self._first: IntArray = np.zeros(problem.n_configs, dtype=np.int64)

    @property
    def candidates(self) -> BoolArray:
        """All of them: a run that is under way is wanted."""
        return np.ones(self._n_configs, dtype=np.bool_)

    def ask(self, slots: int) -> Orders:
        """Return what the procedure wants, or the next positions of every command."""
        if not self._content:
            wanted = self._procedure.ask(slots)
            if wanted.first is not None:
                self._first[wanted.config] = wanted.first
            return wanted
        if self._positions >= self._length or slots < 1:
            return no_orders()
        self._positions = int(min(self._length, self._positions + max(1, -(-slots // self._n_configs))))
        every = np.arange(self._n_configs)
        positions, level = np.full(self._n_configs, self._positions), np.zeros(self._n_configs, dtype=np.int64)
        return Orders(every, positions, level, np.full(self._n_configs, self._first.max()))

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Pass it on, and remember how far any command has come."""
        self._positions = max(self._positions, int(tally.n.max(initial=0)))
        super().tell(tally, changed)

    def finished(self) -> str | None:
        """See the protocol; the procedure's own goal is no reason to stop."""
        if self._decided():
            return DECIDED
        if not self._content:
            return self._procedure.finished()
        return "instances" if self._positions >= self._length else None

    @property
    def _content(self) -> bool:
        return self._procedure.finished() == "epsilon"


def until_decided(question: CampaignQuestion, watch: Watch) -> CampaignQuestion:
    """Return the question with a procedure that goes beyond its own goal; its ledger stays one of that procedure."""

    def make(problem: Problem) -> Procedure:
        engine = build_procedure(question.procedure, REGISTERS, problem, question.options)
        return UntilDecided(engine, problem, lambda: watch.decision.decided)

    return replace(question, maker=make)
