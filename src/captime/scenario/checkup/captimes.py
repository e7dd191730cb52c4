"""How long single runs may take, what a ceiling would hide, and what the instances there are can give."""

import math
from typing import Any

import numpy as np

from captime.certificate import Population
from captime.plans.random_captimes import RandomCaptimes
from captime.procedures import PROCEDURES
from captime.procedures.forecast import LARGEST_SET, Forecast
from captime.procedures.options import build_procedure
from captime.scenario.checkup.finding import Finding
from captime.scenario.parts import Parts
from captime.streams import FiniteStream
from captime.utilities.durations import duration_text, rounded_time

_POSITIONS = 1000


def look_at_captimes(parts: Parts) -> list[Finding]:
    """Return the longest captime to expect, and the effect of the ceiling on what can be certified."""
    plan = build_procedure(parts.procedure_name, PROCEDURES, parts.problem, parts.options).plan
    ceiling = parts.problem.captime_limit
    if isinstance(plan, RandomCaptimes):
        findings = [_drawn(plan)]
    else:
        top = parts.problem.captime_top
        limit = f"at most to {duration_text(top)}" if math.isfinite(top) else "without a limit"
        found = f"captimes rise as far as they have to, {limit}"
        advice = "" if math.isfinite(top) else "set target.ceiling if that is too long"
        findings = [Finding("captimes", "well" if not advice else "note", found, advice, {"longest": _finite(top)})]
    if math.isfinite(ceiling):
        hidden = float(parts.utility(np.array([ceiling]))[0])
        findings.append(_hidden(ceiling, hidden, parts.problem.epsilon))
    return findings


def look_at_set(parts: Parts, seconds: list[float]) -> list[Finding]:
    """Return what these instances can give: for a claim about exactly these, and for one about more like them.

    Args:
        parts: The scenario.
        seconds: What the runs tried so far took; none if nothing is known.
    """
    length, epsilon, n_configs = parts.stream.length, parts.problem.epsilon, len(parts.configurations)
    if length is None or length > LARGEST_SET or epsilon == 0.0 or n_configs < 2 or parts.proposer is not None:
        return []
    forecast = Forecast(length, n_configs, parts.problem.delta)
    wait, facts = "", forecast.as_json((epsilon,))
    if seconds:
        left = forecast.to_run(epsilon) * n_configs * sum(seconds) / len(seconds) / parts.jobs
        wait, facts["seconds"] = f"about {duration_text(rounded_time(left))}, going by the first instance", left
    told, about = forecast.sentence(epsilon, wait=wait), parts.problem.population
    facts["population"] = about.value
    chosen = "exactly these" if about is Population.THESE else "more like them"
    found = f"{told}. The goal is about {chosen}, by instances.population"
    if about is Population.DRAWN and forecast.drawn > epsilon:
        advice = f"epsilon = {epsilon:g} will hardly be reached: {_more_or_these(parts)}"
        return [Finding("this set", "warning", found, advice, facts)]
    return [Finding("this set", "well", found, facts=facts)]


def _more_or_these(parts: Parts) -> str:
    if isinstance(parts.stream, FiniteStream) and parts.stream.sampling == "shuffle" and parts.program.repeatable:
        return "add instances, stop at a larger epsilon, or say instances.population = 'these'; see captime plan"
    return "add instances, or stop at a larger epsilon; see captime plan"


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
