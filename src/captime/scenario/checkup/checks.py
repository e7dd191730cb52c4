"""All checks, one after the other."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from captime.certificate import Population
from captime.procedures import PROCEDURES
from captime.procedures.options import build_procedure
from captime.programs import Configuration
from captime.scenario.checkup.captimes import look_at_captimes, look_at_set
from captime.scenario.checkup.finding import Finding
from captime.scenario.checkup.machine import (
    look_at_executor,
    look_at_ledger,
    look_at_load,
    look_at_scratch,
    look_at_sqlite,
)
from captime.scenario.checkup.running import (
    compare_answers,
    compare_worth,
    look_at_clock,
    try_answers,
    try_cap,
    try_escape,
    try_repeats,
)
from captime.scenario.checkup.trial import Trial
from captime.scenario.parts import Parts
from captime.scenario.scenario import Scenario

Observer = Callable[[Finding], None]
"""Told of each finding as soon as there is one."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found.

    Attributes:
        findings: One per check, or a few.
        seconds: How long it took.
    """

    findings: tuple[Finding, ...]
    seconds: float

    @property
    def well(self) -> bool:
        """Whether a campaign can be started."""
        return all(finding.level != "failed" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 if a campaign can be started; otherwise who has to act, the program's author before the disk's owner."""
        return max((finding.exit_code for finding in self.findings if finding.level == "failed"), default=0)

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        named = ("check", "level", "found", "advice", "facts")
        findings = [{name: getattr(finding, name) for name in named} for finding in self.findings]
        return {"well": self.well, "seconds": self.seconds, "findings": findings}


def examine(scenario: Scenario, captime: float = 5.0, observer: Observer = lambda _: None) -> Checkup:
    """Look at everything a campaign on this scenario depends on; runs the program a few times.

    Args:
        scenario: The scenario; what is wrong with itself is raised, not found.
        captime: How long single runs may take here, in seconds.
        observer: Told of each finding as soon as there is one.
    """
    begun, findings = time.monotonic(), []

    def take(found: list[Finding]) -> None:
        for finding in found:
            findings.append(finding)
            observer(finding)

    parts = _with_a_draw(scenario.build())
    take([_scenario(parts), look_at_sqlite(), *look_at_ledger(parts.ledger)])
    take([look_at_scratch(), look_at_load(parts.jobs)])
    take(look_at_executor(parts.executor))
    take(look_at_captimes(parts))
    take(try_escape(parts.isolation, scenario.folder, memory=scenario.wishes.target.memory))
    with Trial(parts.program, parts.isolation) as trial:
        found, outcomes = try_answers(parts, trial, min(captime, parts.problem.captime_limit))
        take(found)
        if findings[-1].level != "failed":
            # Values that reach a target may differ, and all of them are right.
            if scenario.wishes.target.until is None:
                take(compare_answers(parts, outcomes))
            take(compare_worth(parts, outcomes))
            take(look_at_clock(parts, outcomes))
            take(try_cap(parts, trial, outcomes))
            take(try_repeats(parts, trial, outcomes, needed=_relies_on_repeats(parts)))
    take(look_at_set(parts, [each.cost for each in outcomes.values() if each.cost > 0.0]))
    take(_positive(parts, scenario))
    return Checkup(tuple(findings), time.monotonic() - begun)


def _with_a_draw(parts: Parts) -> Parts:
    """On a space a random draw is tried as well: most of a campaign's configurations are nothing like the default."""
    if parts.proposer is None:
        return parts
    index = parts.proposer.n_listed
    drawn = Configuration("random draw", dict(parts.proposer.propose(index)), origin="random")
    parts.program.extend([drawn])
    return replace(parts, configurations=(*parts.configurations, drawn))


def _relies_on_repeats(parts: Parts) -> bool:
    if parts.problem.population is Population.THESE:
        return True
    return build_procedure(parts.procedure_name, PROCEDURES, parts.problem, parts.options).plan.repeats


def _scenario(parts: Parts) -> Finding:
    instances = parts.stream.n_instances
    where = "instances made on demand" if instances is None else f"{instances:,} instances"
    programs = ", ".join(name for name in parts.program.programs() if not name.startswith("#!"))
    facts = {"configurations": len(parts.configurations), "instances": instances}
    candidates = f"{len(parts.configurations):,} configurations"
    if parts.proposer is not None:
        parameters = len(parts.proposer.space.names)
        facts["parameters"] = parameters
        candidates = f"a space of {parameters:,} parameter{'s' if parameters > 1 else ''}"
    return Finding("scenario", "well", f"{candidates}, {where}, {programs}", facts=facts)


def _positive(parts: Parts, scenario: Scenario) -> list[Finding]:
    """Return whether anything but an exit code tells an answer from a program that gave up."""
    target = scenario.wishes.target
    checked = target.answer or target.until or target.verifier or target.wrapper or target.function or scenario.function
    if checked or all(each.answer for each in parts.configurations):
        return []
    advice = "say what an answer looks like with target.answer, or check it with target.verifier"
    found = "every run that ends with an accepted exit code counts as answered, whatever it printed"
    return [Finding("success rule", "warning", found, advice)]
