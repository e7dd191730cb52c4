"""A procedure takes a bound that fits it, and refuses one that does not, with the reason."""

import numpy as np
import pytest

from captime import simulate
from captime.errors import ScenarioError
from captime.sources.synthetic import synthetic_table

TABLE = synthetic_table(3, 6, 3_000, limit=900.0)


def test_up_with_kl_needs_no_more_rounds_than_with_hoeffding() -> None:
    """KL bounds are never wider, so the same goal is certified no later, with the same answer."""
    found = {
        bound: simulate(TABLE, utility="log-laplace(60, 1)", procedure="up", epsilon=0.3, options={"bound": bound})
        for bound in ("hoeffding", "kl")
    }
    assert found["kl"].bound == "kl"
    assert found["kl"].outcome.rounds <= found["hoeffding"].outcome.rounds
    assert found["kl"].certificate.config == found["hoeffding"].certificate.config
    utility = found["kl"].utility
    truth = np.array([utility(row).mean() for row in TABLE.seconds])
    assert truth[found["kl"].certificate.config] >= truth.max() - 0.3


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("mixture-moments", "can rise when a score falls"),
        ("mixture", "computed from"),
        ("mixture-pairs", "two configurations on the same positions"),
        ("nosuch", "there is no bound 'nosuch'"),
    ],
)
def test_up_refuses_bounds_that_do_not_fit(bound: str, reason: str) -> None:
    """Before anything is run, and saying why."""
    with pytest.raises(ScenarioError, match=reason):
        simulate(TABLE, utility="uniform(60)", procedure="up", options={"bound": bound})


def test_the_published_variant_keeps_its_own_bound() -> None:
    """Exactly like the authors' code means with their bound."""
    with pytest.raises(ScenarioError, match="published code uses hoeffding"):
        simulate(TABLE, utility="uniform(60)", procedure="up", options={"bound": "kl", "variant": "as-published"})
