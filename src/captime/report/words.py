"""A certificate in plain words. Numbers are rounded outward: what is printed is never stronger than what holds."""

import math

from captime.report.account import Account
from captime.utilities.durations import duration_text


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


def statement(account: Account) -> str:
    """The certificate as one or two sentences."""
    held = account.certificate
    name = printable(account.names[held.config])
    if held.n_configs == 1:
        return f"{name} is the only configuration, so there is nothing to compare it with."
    if held.mode == "nothing":
        return (
            f"{name} is what {account.procedure} recommends among {held.n_configs} configurations. It certifies "
            "nothing about utility."
        )
    if held.epsilon >= 1.0:
        return f"Nothing is certified yet; {name} is only the first guess among {held.n_configs} configurations."
    whom = f"the best of these {held.n_configs} configurations"
    if held.gamma == 0.0:
        whom = "the best there can be, in this space or any other"
    elif held.gamma is not None:
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


def lines(account: Account) -> list[tuple[str, str]]:
    """The rest of the certificate, as labelled lines."""
    held = account.certificate
    interval = f"between {rounded_down(held.utility_low)} and {rounded_up(held.utility_high)} under {account.utility}"
    found = [
        *account.first_lines,
        ("expected utility", interval),
        ("cost", account.cost),
        ("candidates left", f"{account.left:,} of {held.n_configs:,}"),
    ]
    if held.challenger is not None and held.epsilon > 0:
        found.append(("held up by", printable(account.names[held.challenger])))
    found += [("stopped because", account.stopped), ("procedure", _procedure_line(account))]
    if held.delta > 0 and held.n_configs > 1:
        found.append(("delta covers", _COVERS[held.mode]))
    return [*found, *account.more]


_COVERS = {
    "nothing": "nothing: this procedure promises nothing about utility",
    "selection": "the recommendation and its interval, at all times (not every other configuration's bounds at once)",
    "simultaneous": "every configuration's interval at all times, hence the recommendation",
}


def _procedure_line(account: Account) -> str:
    options = "".join(f", {name} = {value}" for name, value in account.options.items())
    rounds = account.rounds
    return f"{account.procedure}{options}; bound {account.bound}; {rounds:,} decision{'s' if rounds != 1 else ''}"
