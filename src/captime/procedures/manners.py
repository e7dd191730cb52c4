"""How the optimists behave where there is a choice."""

from dataclasses import dataclass
from typing import Literal

Rule = Literal["new", "old"]
Variant = Literal["recommended", "as-published"]


@dataclass(frozen=True, slots=True)
class Manners:
    """Where the published code and the recommended form differ, and OUP from COUP.

    Attributes:
        rule: When captimes double. `old` is UP's: what the cap hides is at least twice the radius. `new` splits the
            width exactly: what is lost to the cap is at least what is lost to chance.
        keep_best: Report the smallest epsilon so far, with the configuration that reached it.
        leader_counts: Compare the leader with itself too when computing epsilon.
        ties_by_mean: Among equal lower bounds prefer the larger mean utility; otherwise the lower index alone decides.
        spare_last: Leave the last instance of the stream unused.
        stop_alone: Content when one candidate is left.
        test_ahead: The test for doubling uses the radius of this many samples more than there are.
        widest_radius: And never a larger radius than this.
    """

    rule: Rule = "new"
    keep_best: bool = True
    leader_counts: bool = False
    ties_by_mean: bool = True
    spare_last: bool = False
    stop_alone: bool = True
    test_ahead: int = 0
    widest_radius: float = 1.0
