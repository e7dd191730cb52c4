"""A certificate in plain words. Numbers are rounded outward: what is printed is never stronger than what holds."""

import math

from captime.simulation import Simulation
from captime.utilities.durations import duration_text

_STOPPED = {
    "epsilon": "it reached the epsilon asked for",
    "single": "only one candidate was left",
    "instances": "the recorded data are used up",
    "budget": "the CPU budget is spent",
    "interrupted": "it was interrupted",
}


def printable(name: str) -> str:
    r"""A name that cannot move the cursor or colour the terminal: control characters become \xNN."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def rounded_up(value: float, digits: int = 4) -> str:
    """The value, rounded away from what is claimed."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def rounded_down(value: float, digits: int = 4) -> str:
    """The value, rounded away from what is claimed."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def cpu_time(seconds: float) -> str:
    """CPU time for people: days as the papers do, or the unit that fits."""
    return f"{seconds / 86400:,.1f} CPU days" if seconds >= 86400 else f"{duration_text(seconds)} of CPU time"


def statement(result: Simulation) -> str:
    """The certificate as one or two sentences."""
    held, name = result.certificate, printable(result.config_name)
    if held.n_configs == 1:
        return f"{name} is the only configuration, so there is nothing to compare it with."
    if held.epsilon >= 1.0:
        return f"Nothing is certified yet; {name} is only the first guess among {held.n_configs} configurations."
    whom = f"the best of these {held.n_configs} configurations"
    if held.gamma is not None:
        whom = (
            f"the best of the space these {held.n_configs} configurations were drawn from, its luckiest "
            f"{rounded_up(100 * held.gamma, 1)} % left out"
        )
    near = f"is within {rounded_up(held.epsilon)} of {whom}" if held.epsilon > 0 else f"is {whom}"
    if held.delta == 0:
        return f"On this table, where nothing is left to chance, {name} {near}."
    return (
        f"With probability at least {rounded_down(100 * (1 - held.delta), 2).rstrip('0').rstrip('.')} %, {name} {near}."
    )


def lines(result: Simulation) -> list[tuple[str, str]]:
    """The rest of the certificate, as labelled lines."""
    held, outcome = result.certificate, result.outcome
    interval = f"between {rounded_down(held.utility_low)} and {rounded_up(held.utility_high)} under {result.utility}"
    told = "free of charge (a hypothetical oracle)" if result.procedure == "oracle" else cpu_time(result.cpu_seconds)
    cost = f"{told}, {int(outcome.runs.sum()):,} runs, {result.accounting} accounting"
    left = len(outcome.candidates)
    found = [
        ("expected utility", interval),
        ("cost", cost),
        ("candidates left", f"{left:,} of {held.n_configs:,}"),
        *(
            []
            if held.challenger is None or held.epsilon == 0
            else [("held up by", printable(result.table.configs[held.challenger]))]
        ),
        ("stopped because", _STOPPED[outcome.stopped]),
        ("procedure", _procedure_line(result)),
    ]
    if held.delta > 0 and held.n_configs > 1:
        found.append(("delta covers", _COVERS[held.mode]))
    hidden = capping_floor(result)
    if hidden is not None:
        found.append(("capping floor", hidden))
    if outcome.crossed:
        found.append(("warning", _CROSSED.format(outcome.crossed)))
    return found


_COVERS = {
    "selection": "the recommendation and its interval, at all times (not every other configuration's bounds at once)",
    "simultaneous": "every configuration's interval at all times, hence the recommendation",
}

_CROSSED = (
    "the bounds of {} configurations contradict each other, which independent instances do with probability at most "
    "delta; are the instances in a random order?"
)


def _procedure_line(result: Simulation) -> str:
    options = "".join(f", {name} = {value}" for name, value in result.options.items())
    rounds = result.outcome.rounds
    return f"{result.procedure}{options}; bound {result.bound}; {rounds:,} decision{'s' if rounds != 1 else ''}"


def capping_floor(result: Simulation) -> str | None:
    """What the table's timeout hides, if it hides enough to matter: epsilon cannot fall below it."""
    outcome, limit = result.outcome, result.table.limit
    config = result.certificate.config
    at_limit = outcome.captimes[config] >= limit and math.isfinite(limit)
    hidden = float(outcome.capping[config])
    if not at_limit or hidden < 1e-4:
        return None
    return (
        f"{rounded_up(hidden)} of the utility lies behind the table's timeout of {limit:g} s; epsilon cannot fall "
        "much below it"
    )


def assumptions(result: Simulation) -> list[str]:
    """What the certificate rests on, in words a user can check."""
    table = result.table
    said = []
    if result.certificate.delta == 0:
        said.append(f"The {table.n_groups:,} instances of the table are all that matters.")
    elif result.population == "finite":
        said.append(
            f'"Best" means best on average over exactly these {table.n_instances:,} recorded runs per configuration; '
            f"instances were drawn with replacement (seed {result.seed})."
        )
    else:
        order = f"in random order (seed {result.seed})" if result.sampling == "shuffle" else "in the recorded order"
        said.append(
            f"The {table.n_groups:,} instances are independent draws from what you care about, met {order}, each once."
        )
    if result.repeats:
        said.append(
            "A configuration takes the same time on the same instance whenever it is run again with the same seed."
        )
    else:
        said.append("Every run is made once, with a captime that was fixed before it started.")
    if math.isfinite(table.limit):
        said.append(f"A run recorded at the timeout of {table.limit:g} s counts as at least that long.")
    if table.never_finished > 0:
        said.append(
            f"Crashes and the like ({table.never_finished:.1%} of the runs) never finish and are worth nothing."
        )
    return said
