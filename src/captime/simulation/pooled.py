"""Who took part in a simulation on a space, in the place where a simulation on a table has its table."""

from dataclasses import dataclass

from captime.spaces import Settings


@dataclass(frozen=True, slots=True)
class Found:
    """What the answer is really worth: simulations know their targets' laws.

    Attributes:
        settings: Of the recommended configuration.
        worth: Its expected utility.
        best: The largest expected utility in the pool.
        default: Expected utility of the default configuration; None where the rows of a table are all there is,
            and none of them is the default.
        above: The share of random configurations that are better by more than the certified epsilon.
        drawn: How many random configurations that was estimated from.
    """

    settings: Settings
    worth: float
    best: float
    default: float | None
    above: float
    drawn: int


@dataclass(frozen=True, slots=True)
class Pooled:
    """The pool as it was at the end.

    Attributes:
        name: What to call the target.
        configs: Names by index.
        settings: Settings by index.
        limit: Nothing is known of runs beyond this.
        n_instances: Recorded instances behind the target; 0 if there are none.
        law: What runtimes rest on.
        proposals: Configurations of the pool that a model proposed.
        found: What the answer is really worth.
        notes: What a reader of the results should know.
    """

    name: str
    configs: tuple[str, ...]
    settings: tuple[Settings, ...]
    limit: float
    n_instances: int
    law: str
    proposals: int
    found: Found
    notes: tuple[str, ...] = ()

    @property
    def n_configs(self) -> int:
        """How many there were at the end."""
        return len(self.configs)
