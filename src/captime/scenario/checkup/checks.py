"""All checks, one after the other."""

import math
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from captime.certificate import Population
from captime.errors import ScenarioError, StorageTrouble
from captime.ledger.connection import check_writable, file_system, is_network, sqlite_note
from captime.plans import RandomCaptimes, UtilityLadder
from captime.procedures import REGISTERS
from captime.procedures.forecast import LARGEST_SET, Forecast
from captime.procedures.problem import build_procedure
from captime.programs import Configuration
from captime.scenario.checkup.running import (
    STORAGE,
    WORDS,
    Finding,
    Trial,
    compare_answers,
    compare_worth,
    look_at_clock,
    try_answers,
    try_cap,
    try_escape,
    try_repeats,
)
from captime.scenario.models import ExecutorSection
from captime.scenario.scenario import Scenario
from captime.scenario.spec import WHICH_CLUSTER, CampaignSpec, allowed_cores
from captime.streams import FiniteStream
from captime.supervision.fitness import Fitness
from captime.utilities.formula import duration_text, rounded_time

# How long single runs may take, what a ceiling would hide, and what the instances there are can give.

_POSITIONS = 1000
# Seconds from which on a captime is worth a remark, and the remedy.
_LONG = 3600.0
_SHORTER = "set target.ceiling, or choose a utility that falls sooner, if that is too long"


def look_at_captimes(spec: CampaignSpec) -> list[Finding]:
    """Return the longest captime to expect, and the effect of the ceiling on what can be certified."""
    plan = build_procedure(spec.question.procedure, REGISTERS, spec.question.problem(), spec.question.options).plan
    ceiling = spec.question.ceiling
    if isinstance(plan, RandomCaptimes):
        findings = [_drawn(plan)]
    elif isinstance(plan, UtilityLadder) and spec.question.population is Population.THESE:
        findings = [_on_set(plan)]
    else:
        top = spec.question.problem().captime_top
        limit = f"at most to {duration_text(top)}" if math.isfinite(top) else "without a limit"
        found = f"captimes rise as far as they have to, {limit}"
        advice = "" if math.isfinite(top) else "set target.ceiling if that is too long"
        findings = [Finding("captimes", "well" if not advice else "note", found, advice, {"longest": _finite(top)})]
    if math.isfinite(ceiling):
        hidden = float(spec.question.utility(np.array([ceiling]))[0])
        findings.append(_hidden(ceiling, hidden, spec.question.epsilon))
    return findings


def look_at_set(spec: CampaignSpec, seconds: list[float]) -> list[Finding]:
    """Return what these instances can give: for a claim about exactly these, and for one about more like them.

    Args:
        spec: The scenario.
        seconds: What the runs tried so far took; none if nothing is known.
    """
    length, epsilon, n_configs = spec.question.stream.length, spec.question.epsilon, len(spec.configurations)
    if length is None or length > LARGEST_SET or epsilon == 0.0 or n_configs < 2 or spec.question.proposer is not None:
        return []
    forecast = Forecast(length, n_configs, spec.question.delta, population=spec.question.population)
    wait, facts = "", forecast.as_json((epsilon,))
    if seconds:
        left = forecast.to_run(epsilon) * n_configs * sum(seconds) / len(seconds) / spec.settings.jobs
        wait, facts["seconds"] = f"about {duration_text(rounded_time(left))}, going by the first instance", left
    told, about = forecast.sentence(epsilon, wait=wait), spec.question.population
    facts["population"] = about.value
    chosen = "exactly these" if about is Population.THESE else "more like them"
    found = f"{told}. The goal is about {chosen}, by instances.population"
    if about is Population.DRAWN and forecast.drawn > epsilon:
        advice = f"epsilon = {epsilon:g} will hardly be reached: {_more_or_these(spec)}"
        return [Finding("this set", "warning", found, advice, facts)]
    return [Finding("this set", "well", found, facts=facts)]


def _more_or_these(spec: CampaignSpec) -> str:
    if (
        isinstance(spec.question.stream, FiniteStream)
        and spec.question.stream.sampling == "shuffle"
        and spec.question.program.repeatable
    ):
        return "add instances, stop at a larger epsilon, or set instances.population = 'these'; see captime plan"
    if isinstance(spec.question.stream, FiniteStream) and not spec.question.program.repeatable:
        return (
            "add instances, or stop at a larger epsilon; or, if the program takes the same time again on the same "
            "instance, set target.repeatable = true, so that the goal can be about exactly these; see captime plan"
        )
    return "add instances, or stop at a larger epsilon; see captime plan"


def _on_set(plan: UtilityLadder) -> Finding:
    """Return the captimes of a claim about exactly these instances: they begin short where that saves time."""
    first, longest = float(plan.rungs[0]), float(plan.rungs[-1])
    found = f"every run may take {duration_text(longest)}"
    if first < longest:
        found = f"captimes start at {duration_text(first)} and reach {duration_text(longest)} where that is needed"
    advice = "" if longest <= _LONG else _SHORTER
    return Finding("captimes", "note" if advice else "well", found, advice, {"first": first, "longest": longest})


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
    advice = "" if longest <= _LONG else _SHORTER
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


# The machine: place of the ledger, version of SQLite, load of the processors; and the cluster, if there is one.

# A run takes well under a kilobyte in a ledger; this is enough for a million of them, and for generated instances.
_PLENTY = 2 << 30
_TOO_LITTLE = 100 << 20
_REACH_SECONDS = 5.0


def look_at_sqlite() -> Finding:
    """Check the library that writes the ledger."""
    note = sqlite_note()
    facts = {"sqlite": sqlite3.sqlite_version}
    if note is None:
        return Finding("SQLite", "well", f"version {sqlite3.sqlite_version}", facts=facts)
    return Finding("SQLite", "note", note, "nothing needs to be done", facts)


def look_at_ledger(ledger: Path) -> list[Finding]:
    """Return whether a ledger can be written there, and how much room there is."""
    folder = ledger.parent
    kind = file_system(folder) if folder.is_dir() else ""
    facts = {"ledger": str(ledger), "file_system": kind}
    try:
        check_writable(ledger)
    except StorageTrouble as error:
        advice = "choose another place with ledger = ... or --ledger"
        return [Finding("ledger", "failed", str(error), advice, facts, STORAGE)]
    found = f"{ledger.name} {'exists and will be resumed' if ledger.exists() else 'will be made'}"
    where = f"{found}; its file system is {kind}" if kind else found
    if is_network(kind):
        advice = "put the ledger on a local disk with ledger = ..., or SQLite can lose rows"
        return [Finding("ledger", "failed", where, advice, facts, STORAGE), _look_at_disk(folder)]
    return [Finding("ledger", "well", where, facts=facts), _look_at_disk(folder)]


def _look_at_disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    found, facts = f"{free / 1e9:,.1f} GB free", {"free_bytes": free}
    if free < _TOO_LITTLE:
        return Finding("disk", "failed", found, "make room: a full disk stops the campaign", facts, STORAGE)
    if free < _PLENTY:
        return Finding("disk", "warning", found, "make room if the campaign is to be long", facts)
    return Finding("disk", "well", found, facts=facts)


def look_at_scratch(folder: str | None = None) -> Finding:
    """Return whether runs have room for their directories.

    Args:
        folder: Where they are made; the usual place for temporary files if left out.
    """
    wanted, usual = os.environ.get("TMPDIR"), folder or tempfile.gettempdir()
    lack = Fitness(usual).before()
    facts = {"folder": usual, "shortage": None if lack is None else lack.what.value}
    if lack is not None:
        advice = "make room there, or name another folder with TMPDIR: runs cannot begin without it"
        return Finding("scratch", "failed", lack.words, advice, facts, STORAGE)
    free = shutil.disk_usage(usual).free
    found = f"runs take place in {usual}, {free / 1e9:,.1f} GB free"
    if wanted and folder is None and not _same(wanted, usual):
        advice = f"TMPDIR names {wanted}, which cannot be written to; make room there, or change TMPDIR"
        return Finding("scratch", "warning", found, advice, facts)
    return Finding("scratch", "well", found, facts=facts)


def look_at_load(jobs: int) -> Finding:
    """Return whether other processes use the processors that runs are to be measured on."""
    busy, cores = os.getloadavg()[0], allowed_cores()
    found = f"{jobs} jobs on {cores} cores; {busy:.1f} processes were busy in the last minute"
    facts = {"jobs": jobs, "cores": cores, "load": busy}
    if jobs + busy > cores + 0.5:
        advice = (
            "runs will wait for each other; CPU times suffer a little, wall-clock times a lot. Wait, or use fewer jobs"
        )
        return Finding("processors", "warning", found, advice, facts)
    return Finding("processors", "well", found, facts=facts)


def look_at_executor(wishes: ExecutorSection) -> list[Finding]:
    """Return whether the cluster can be used, where runs are to happen on one; nothing is started there."""
    if wishes.kind == "local":
        return []
    if not (wishes.address or wishes.scheduler_file or wishes.cluster):
        found = "[executor] does not say which cluster; only captime.configure could be given one, as a client"
        return [Finding("executor", "failed", found, WHICH_CLUSTER, exit_code=WORDS)]
    try:
        from captime.executors.dask_cluster import ClusterSettings, examined  # noqa: PLC0415 (an optional package)
    except ImportError:
        advice = "install it with: pip install 'captime[dask]'"
        return [Finding("executor", "failed", "a Dask cluster needs an optional package", advice, exit_code=WORDS)]
    which = (wishes.address, wishes.scheduler_file, wishes.cluster, wishes.workers, dict(wishes.options))
    try:
        found = examined(ClusterSettings(*which), _REACH_SECONDS)
    except ScenarioError as error:
        advice = "correct the section [executor]; the other checks are about this machine"
        return [Finding("executor", "failed", str(error), advice, exit_code=WORDS)]
    advice = "all other checks are about this machine; workers have to find captime, program and instances too"
    return [Finding("executor", "note", found, advice, {"cluster": wishes.cluster or "there already"})]


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


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

    spec = _with_a_draw(scenario.build())
    take([_scenario(spec, scenario), look_at_sqlite(), *look_at_ledger(spec.ledger)])
    take([look_at_scratch(), look_at_load(spec.settings.jobs)])
    take(look_at_executor(spec.executor))
    take(look_at_captimes(spec))
    take(try_escape(spec.settings.isolation, scenario.folder, memory=scenario.wishes.target.memory))
    with Trial(spec.question.program, spec.settings.isolation) as trial:
        found, outcomes = try_answers(spec, trial, min(captime, spec.question.ceiling))
        take(found)
        if findings[-1].level != "failed":
            # Values that reach a target may differ, and all of them are right.
            if scenario.wishes.target.until is None:
                take(compare_answers(spec, outcomes))
            take(compare_worth(spec, outcomes))
            take(look_at_clock(spec, outcomes))
            take(try_cap(spec, trial, outcomes))
            take(try_repeats(spec, trial, outcomes, needed=_relies_on_repeats(spec)))
    take(look_at_set(spec, [each.cost for each in outcomes.values() if each.cost > 0.0]))
    take(_positive(spec, scenario))
    return Checkup(tuple(findings), time.monotonic() - begun)


def _with_a_draw(spec: CampaignSpec) -> CampaignSpec:
    """On a space a random draw is tried as well: most of a campaign's configurations are nothing like the default."""
    if spec.question.proposer is None:
        return spec
    index = spec.question.proposer.n_listed
    drawn = Configuration("random draw", dict(spec.question.proposer.propose(index)), origin="random")
    spec.question.program.extend([drawn])
    return replace(spec, configurations=(*spec.configurations, drawn))


def _relies_on_repeats(spec: CampaignSpec) -> bool:
    if spec.question.population is Population.THESE:
        return True
    return build_procedure(
        spec.question.procedure, REGISTERS, spec.question.problem(), spec.question.options
    ).plan.repeats


def _scenario(spec: CampaignSpec, scenario: Scenario) -> Finding:
    instances = spec.question.stream.n_instances
    where = "instances made on demand" if instances is None else f"{instances:,} instances"
    programs = ", ".join(name for name in scenario.program.programs() if not name.startswith("#!"))
    facts = {"configurations": len(spec.configurations), "instances": instances}
    candidates = f"{len(spec.configurations):,} configurations"
    if spec.question.proposer is not None:
        parameters = len(spec.question.proposer.space.names)
        facts["parameters"] = parameters
        candidates = f"a space of {parameters:,} parameter{'s' if parameters > 1 else ''}"
    return Finding("scenario", "well", f"{candidates}, {where}, {programs}", facts=facts)


def _positive(spec: CampaignSpec, scenario: Scenario) -> list[Finding]:
    """Return whether anything but an exit code tells an answer from a program that gave up."""
    target = scenario.wishes.target
    checked = target.answer or target.until or target.verifier or target.wrapper or target.function or scenario.function
    if checked or all(each.answer for each in spec.configurations):
        return []
    advice = "describe an answer with target.answer, or check it with target.verifier"
    found = "every run that ends with an accepted exit code counts as answered, whatever it printed"
    return [Finding("success rule", "warning", found, advice)]
