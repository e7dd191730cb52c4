"""How long single runs may take, which a procedure decides before they start; and what a ceiling would hide."""

import math
from typing import Any

import numpy as np

from captime.plans.random_captimes import RandomCaptimes
from captime.procedures import PROCEDURES
from captime.procedures.options import build_procedure
from captime.scenario.checkup.finding import Finding
from captime.scenario.parts import Parts
from captime.utilities.durations import duration_text

_POSITIONS = 1000


def look_at_captimes(parts: Parts) -> list[Finding]:
    """The longest captime to expect, and the effect of the ceiling on what can be certified."""
    plan = build_procedure(parts.procedure_name, PROCEDURES, parts.problem, parts.options).plan
    ceiling = parts.problem.captime_limit
    if isinstance(plan, RandomCaptimes):
        findings = [_drawn(plan)]
    else:
        top = parts.problem.captime_top
        found = f"captimes rise as far as they have to, at most to {duration_text(top)}"
        advice = "" if math.isfinite(top) else "set target.ceiling if that is too long"
        findings = [Finding("captimes", "well" if not advice else "note", found, advice, {"longest": _finite(top)})]
    if math.isfinite(ceiling):
        hidden = float(parts.utility(np.array([ceiling]))[0])
        findings.append(_hidden(ceiling, hidden, parts.problem.epsilon))
    return findings


def _drawn(plan: RandomCaptimes) -> Finding:
    position = np.arange(_POSITIONS)
    captimes = plan.captime(np.zeros_like(position), position)
    median, most, longest = np.quantile(captimes, [0.5, 0.95, 1.0]).tolist()
    limit = float(plan.longest.at(np.array([0]))[0])
    found = (
        f"half of the runs may take {duration_text(median)} or less, 19 of 20 at most {duration_text(most)}; the "
        f"longest of the first {_POSITIONS} gets {duration_text(longest)}"
    )
    facts = {"median": median, "most": most, "longest": longest, "limit": _finite(limit), "positions": _POSITIONS}
    advice = (
        "" if longest <= 3600.0 else "set target.ceiling, or choose a utility that falls sooner, if that is too long"
    )
    return Finding("captimes", "note" if advice else "well", found, advice, facts)


def _hidden(ceiling: float, hidden: float, epsilon: float) -> Finding:
    """[algorithms 13] A run cut at c < K may be worth up to u(c) on average, whatever the boost: B·u(c)·(1/B)."""
    found = (
        f"behind the ceiling of {duration_text(ceiling)} an answer is worth {hidden:.4f} at most, so epsilon cannot be "
        f"promised below {hidden:.4f} times the share of runs that reach it"
    )
    facts = {"ceiling": ceiling, "hidden": hidden, "epsilon": epsilon}
    if hidden > epsilon:
        advice = f"epsilon = {epsilon:g} may be out of reach: raise the ceiling, or stop at a larger epsilon"
        return Finding("ceiling", "warning", found, advice, facts)
    return Finding("ceiling", "well", found, facts=facts)


def _finite(seconds: float) -> Any:
    """JSON has no infinity."""
    return seconds if math.isfinite(seconds) else None
