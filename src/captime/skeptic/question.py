"""What was asked, as the ledger's scenario says; nothing is taken from the engine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from captime.errors import LedgerDamaged, UtilityError
from captime.utilities import Utility, parse_utility

# The largest B of the random captimes.
_MOST_BOOST = 100.0


@dataclass(frozen=True, slots=True)
class Question:
    """The terms of a campaign.

    Attributes:
        utility: What an answer is worth; the function that captime computes is taken at its word.
        delta: The failure probability asked for, exactly as the double it is.
        procedure: Who decided.
        options: Its options.
        seed: Key of the draws.
        captime_first: The first captime, where captimes rise.
        ceiling: No run gets more seconds than this.
        goal: The epsilon that was asked for at first; None if it is not on record.
        space: The parameter space, as under `[space]`; None if configurations are listed.
        n_listed: How many configurations were listed at first; None if it is not on record.
        window: How many runs are open at once where outcomes are told in a fixed order; None where they are told as
            they arrive.
        length: Number of positions of the stream at first; None if it has no end, or that is not on record.
        sampling: How instances were taken.
        schedule: By which rules runs were ordered and delta was shared out; the first where that is not on record.
    """

    utility: Utility
    delta: Fraction
    procedure: str
    options: Mapping[str, Any]
    seed: int
    captime_first: float = 1.0
    ceiling: float = math.inf
    goal: float | None = None
    space: Mapping[str, Any] | None = None
    n_listed: int | None = None
    window: int | None = None
    length: int | None = None
    sampling: str = ""
    schedule: int = 1


def read_question(scenario: Mapping[str, Any]) -> Question | str:
    """The question of a ledger, or why it cannot be read."""
    missing = [name for name in ("utility", "delta", "procedure", "seed") if name not in scenario]
    if missing:
        return f"its scenario does not say the {missing[0]}"
    text = str(scenario["utility"])
    if text.startswith("python"):
        return f"its utility is a Python function ({text}), and verifying a ledger executes no code of strangers"
    _check_terms(scenario)
    try:
        utility = parse_utility(text)
    except UtilityError as error:
        return f"its utility cannot be read: {error}"
    return Question(
        utility,
        Fraction(float(scenario["delta"])),
        str(scenario["procedure"]),
        dict(scenario.get("options", {})),
        int(scenario["seed"]),
        float(scenario.get("captime_first", 1.0)),
        _number(scenario, "target", "ceiling") or math.inf,
        _number(scenario, "goal"),
        _in_order(scenario.get("space"), scenario.get("space_order")),
        _length(scenario.get("configurations")),
        int(scenario["window"]) if scenario.get("order") == "fixed" else None,
        int(scenario["length"]) if isinstance(scenario.get("length"), int) else None,
        str((scenario.get("instances") or {}).get("sampling", "")),
        int(scenario["schedule"]) if isinstance(scenario.get("schedule"), int) else 1,
    )


def _check_terms(scenario: Mapping[str, Any]) -> None:
    """Refuse terms under which the documented bounds do not hold: captime asks no such question."""
    options, ceiling = scenario.get("options") or {}, _number(scenario, "target", "ceiling")
    terms = (
        ("delta", scenario["delta"], 0.0 < float(scenario["delta"]) < 1.0, "between 0 and 1"),
        ("boost", options.get("boost", 1.0), 1.0 <= float(options.get("boost", 1.0)) <= _MOST_BOOST, "from 1 to 100"),
        ("pilot", options.get("pilot", 1), float(options.get("pilot", 1)) >= 1.0, "at least 1"),
        (
            "captime_first",
            scenario.get("captime_first", 1.0),
            0.0 < float(scenario.get("captime_first", 1.0)) < math.inf,
            "a time above 0",
        ),
        ("target.ceiling", ceiling, ceiling is None or 0.0 < ceiling < math.inf, "a time above 0"),
        ("window", scenario.get("window"), (scenario.get("window") or 1) >= 1, "at least 1"),
    )
    for name, value, fits, wanted in terms:
        if not fits:
            raise LedgerDamaged(f"its scenario says {name} = {value!r}, which captime would not run: expected {wanted}")


def _in_order(section: Any, names: Any) -> Mapping[str, Any] | None:
    """A space with its parameters in the order in which they are drawn; JSON objects have none."""
    if not isinstance(section, Mapping):
        return None
    nested = section.get("parameters")
    tables = nested if isinstance(nested, Mapping) else section
    if not isinstance(names, list) or not set(names) <= set(tables):
        return section
    ordered = {name: tables[name] for name in names}
    return (
        {**section, "parameters": ordered}
        if tables is nested
        else {**ordered, **{name: value for name, value in section.items() if name not in ordered}}
    )


def _length(section: Any) -> int | None:
    listed = section.get("list") if isinstance(section, Mapping) else None
    return len(listed) if isinstance(listed, list) else None


def _number(scenario: Any, *names: str) -> float | None:
    """A number somewhere inside a scenario; None if there is none."""
    for name in names:
        scenario = scenario.get(name) if isinstance(scenario, Mapping) else None
    return float(scenario) if isinstance(scenario, int | float) else None
