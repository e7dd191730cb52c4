"""What the user takes home: one configuration, and how sure one can be that none is better by much."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Certificate:
    """With probability at least 1 - delta, `config` is within `epsilon` of the best of `n_configs` configurations.

    The statement holds at every moment at once: it may be read, and the run stopped, whenever one likes.

    Attributes:
        config: Index of the recommended configuration.
        epsilon: No configuration's expected utility exceeds this one's by more. 1 says nothing yet.
        delta: Allowed probability that any certificate of the run was wrong; 0 for statements about a known table.
        n_configs: Among how many.
        utility_low: Lower bound on the expected utility of `config`.
        utility_high: Upper bound on it.
        gamma: In infinite spaces, the share of luckiest configurations left out of the comparison.
    """

    config: int
    epsilon: float
    delta: float
    n_configs: int
    utility_low: float
    utility_high: float
    gamma: float | None = None
