"""Orders answered by a target instead of a table: the same road, with room for configurations that come later."""

from dataclasses import fields

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import InvariantViolated
from captime.plans.protocol import Plan
from captime.simulation.target import Target
from captime.sources import RuntimeTable
from captime.sources.accounting import Accounting
from captime.sources.replay import Replay
from captime.sources.sampling import RowStream
from captime.tally import blank_tally
from captime.utilities import Utility


class _Positions(RowStream):
    """Positions stand for themselves: a target knows its own instances."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def length(self) -> int | None:
        return self._target.length

    @property
    def population(self) -> str:
        return self._target.population

    def rows(self, start: int, stop: int) -> IntArray:
        return np.arange(start, stop)


class TargetReplay(Replay):
    """A target as a source.

    Args:
        target: Answers; a configuration must have been added to it before its runs are asked for.
        plan: How long runs may take.
        utility: What answers are worth.
        accounting: Which cost the tally carries.
        pays: False for a hypothetical procedure.
    """

    def __init__(
        self, target: Target, plan: Plan, utility: Utility, *, accounting: Accounting = "restart", pays: bool = True
    ) -> None:
        # A table in name only: it lends its timeout, and its runtimes are never read.
        lent = RuntimeTable.build(target.name, ["nobody"], ["nothing"], np.zeros((1, 1)), timeout=target.limit)
        super().__init__(lent, _Positions(target), plan, utility, accounting=accounting, pays=pays)
        self._target = target

    def grow(self, n_configs: int) -> None:
        """Make room for `n_configs` configurations; what is known of the others stays."""
        before = self.tally
        known = len(before.n)
        if n_configs <= known:
            return
        self.tally = blank_tally(n_configs, self.samples, self.times)
        for field in fields(before):
            if field.name not in ("samples", "times"):
                getattr(self.tally, field.name)[:known] = getattr(before, field.name)

    def seconds(self, config: IntArray, first: int, last: int) -> FloatArray:
        """Runtimes of these configurations on positions first, …, last - 1."""
        length = self._target.length
        if length is not None and last > length:
            raise InvariantViolated(f"positions up to {last} were ordered from a stream of {length}")
        return np.stack([self._target.seconds(each, first, last) for each in config.tolist()])

    def seconds_at(self, config: IntArray, position: IntArray) -> FloatArray:
        """Runtimes of each configuration on its own row of positions, shape (A, K)."""
        first, last = int(position.min()), int(position.max()) + 1
        return np.take_along_axis(self.seconds(config, first, last), position - first, axis=1)
