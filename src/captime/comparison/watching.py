"""A question about two commands, asked of the ledger while the runs are made: it stops the campaign when decided."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from captime.arrays import BoolArray, IntArray
from captime.campaign.question import Question
from captime.comparison.pairs import Gate, WorthMore, paired_scores
from captime.ledger import LedgerReader
from captime.procedures import PROCEDURES, Problem
from captime.procedures.options import build_procedure
from captime.procedures.protocol import Procedure, ProcedureWrapper
from captime.report.known_runs import known_runs, lottery_of, score_ends
from captime.tally import Tally
from captime.targets import Targets, no_targets
from captime.utilities import Utility

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

    def ask(self, slots: int) -> Targets:
        """Return what the procedure wants, or the next positions of every command."""
        if not self._content:
            wanted = self._procedure.ask(slots)
            if wanted.first is not None:
                self._first[wanted.config] = wanted.first
            return wanted
        if self._positions >= self._length or slots < 1:
            return no_targets()
        self._positions = int(min(self._length, self._positions + max(1, -(-slots // self._n_configs))))
        every = np.arange(self._n_configs)
        positions, level = np.full(self._n_configs, self._positions), np.zeros(self._n_configs, dtype=np.int64)
        return Targets(every, positions, level, np.full(self._n_configs, self._first.max()))

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


def until_decided(question: Question, watch: Watch) -> Question:
    """Return the question with a procedure that goes beyond its own goal; its ledger stays one of that procedure."""

    def make(problem: Problem) -> Procedure:
        engine = build_procedure(question.procedure, PROCEDURES, problem, question.options)
        return UntilDecided(engine, problem, lambda: watch.decision.decided)

    return replace(question, maker=make)
