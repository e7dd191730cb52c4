"""The program itself: does it start, does it answer, does the cap stop it, does it take the same time again?"""

import os
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, assert_never

import numpy as np

from captime.certificate import Population
from captime.executors.local import LocalExecutor
from captime.programs import CommandProgram, Conditions, Configuration, FunctionProgram, environment_of
from captime.programs.command import Success
from captime.programs.judge import agrees, contradicts, meaning
from captime.programs.protocol import Program
from captime.runs import Halt, RunOutcome, RunRequest, Verdict
from captime.scenario.spec import CampaignSpec
from captime.streams import FiniteStream, Instance
from captime.supervision.processes import tagged
from captime.supervision.scratch import own_tag, sweep, sweep_abandoned
from captime.utilities.formula import duration_text
from captime.utilities.suggest import ALL_WELL, LITTLE

Level = Literal["well", "note", "warning", "failed"]

TARGET, STORAGE, WORDS = 7, 6, 2
"""Exit codes of what makes a campaign impossible: the program, the place of the ledger, or what the scenario says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check-up.

    Attributes:
        check: What was looked at.
        level: `well`; `note`, which is good to know; `warning`, which costs something; `failed`.
        found: What was found.
        advice: What to do about it.
        facts: The same in numbers, for programs.
        exit_code: Of a check-up in which this failed.
    """

    check: str
    level: Level
    found: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    exit_code: int = TARGET


# A few runs of the real program, one after the other, through the same supervisors that a campaign uses.


class Trial:
    """One slot for trying things out.

    Args:
        program: What is run.
        isolation: The level that was asked for; None for the best.

    Attributes:
        executor: The slot.
        tag: What the tags of all its processes begin with.
    """

    def __init__(self, program: Program, isolation: str | None = None) -> None:
        sweep_abandoned()
        self.tag = own_tag("doctor")
        self.executor = LocalExecutor(program, 1, tag=self.tag, isolation=isolation)
        self._attempts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.executor.close()
        sweep(self.tag)

    def run(self, config: int, position: int, captime: float) -> RunOutcome:
        """One run; waits for its end."""
        request = RunRequest(config, position, captime, self._attempts)
        self._attempts += 1
        self.executor.submit([request])
        while True:
            for outcome in self.executor.collect():
                return outcome

    def survivors(self) -> int:
        """Count the processes of earlier runs that are still there.

        A fork server, which waits for the next call of a Python function, carries the tag as well and is no run: it
        stays in the session of its supervisor, which a run leaves before its first line and cannot enter again.
        """
        supervisors = set(self.executor.pids())
        sessions = map(_session, tagged(f"{self.tag}/"))
        return sum(session is not None and session not in supervisors for session in sessions)


def _session(pid: int) -> int | None:
    """Return the session of a process; None if it has ended since it was listed."""
    try:
        return os.getsid(pid)
    except OSError:
        return None


# More configurations than this are not tried one by one.
_CONFIGS = 12
_REPEATS = 5
# Runs that differ by less than this are as equal as a shared machine lets them be.
_SAME_SHARE, _SAME_SECONDS = 0.25, 0.03
_SHORTEST = 0.002
# It forks twice, leaves its session and ignores polite signals; all of it burns time until it is killed.
_ESCAPE = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
while True:
    pass
"""


def try_answers(spec: CampaignSpec, trial: Trial, captime: float) -> tuple[list[Finding], dict[int, RunOutcome]]:
    """Run every configuration (of many, a few) once on the first instance; return what came back, by configuration."""
    outcomes: dict[int, RunOutcome] = {}
    # The last one is among the few: on a space it is the random draw.
    last = len(spec.configurations) - 1
    for config in [*range(min(last, _CONFIGS - 1)), last]:
        outcomes[config] = trial.run(config, 0, captime)
        if outcomes[config].halt is Halt.NOT_STARTED:
            return [_not_started(spec, outcomes[config])], outcomes
        if outcomes[config].shortage is not None:
            return [_unfit(spec, outcomes[config])], outcomes
    verdicts = Counter(each.verdict.value for each in outcomes.values() if each.verdict is not None)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    tried = f"{_whom(spec, len(outcomes))} on the first instance: {told}"
    facts = {"tried": len(outcomes), "verdicts": dict(verdicts), "captime": captime}
    answered = [config for config, outcome in outcomes.items() if outcome.verdict is Verdict.ANSWERED]
    bad = {config: each for config, each in outcomes.items() if each.verdict not in _HARMLESS}
    if not bad:
        if answered:
            return [Finding("answers", "well", tried, facts=facts)], outcomes
        advice = f"nothing answered within {duration_text(captime)}, so nothing is known; try --captime with more time"
        return [Finding("answers", "warning", tried, advice, facts)], outcomes
    worst = min(bad)
    level: Level = "failed" if not answered and len(bad) == len(outcomes) else "warning"
    return [
        Finding("answers", level, f"{tried}. {_story(spec, bad[worst])}", _advice(spec, bad[worst]), facts)
    ], outcomes


def compare_worth(spec: CampaignSpec, outcomes: dict[int, RunOutcome]) -> list[Finding]:
    """What the answers that came back are worth under the utility: nothing, everything, or something in between."""
    times = {config: each.runtime for config, each in outcomes.items() if each.verdict is Verdict.ANSWERED}
    utility = spec.question.utility
    if not times:
        cut = [each.runtime for each in outcomes.values() if each.verdict is Verdict.CAPPED]
        if not cut:
            return []
        worth = float(utility(np.array(max(cut))))
        found = f"no answer within {duration_text(max(cut))}; an answer just then would be worth {worth:.2f} at most"
        if worth >= LITTLE:
            return [Finding("worth", "note", found, "try --captime with more time", {"worth": worth})]
        advice = "choose a utility that falls later, or easier instances; `captime utility` shows what is asked"
        return [Finding("worth", "warning", found, advice, {"worth": worth})]
    worths = {config: float(utility(np.array(seconds))) for config, seconds in times.items()}
    best, worst = (choose(times, key=lambda config: times[config]) for choose in (min, max))
    clock = "wall-clock time" if spec.question.clock == "wall" else "CPU time"
    found = (
        f"{spec.configurations[best].name!r} took {duration_text(times[best])} of {clock} here; under {utility} that "
        f"is worth {worths[best]:.2f}"
    )
    if worst != best:
        name = spec.configurations[worst].name
        found += f". The slowest answer, of {name!r}, took {duration_text(times[worst])}: {worths[worst]:.2f}"
    facts = {"seconds": times[best], "worth": worths[best], "slowest": times[worst], "least": worths[worst]}
    if worths[best] < LITTLE:
        advice = "choose a utility that falls later, or all configurations are worth nearly nothing"
        return [Finding("worth", "warning", found, advice, facts)]
    if worths[worst] > ALL_WELL:
        advice = (
            "choose a utility that falls sooner if speed matters, or use harder instances: configurations hardly differ"
        )
        return [Finding("worth", "warning", found, advice, facts)]
    return [Finding("worth", "well", found, facts=facts)]


def look_at_clock(spec: CampaignSpec, outcomes: dict[int, RunOutcome]) -> list[Finding]:
    """Return whether the program waits, which its CPU time does not show."""
    measured = [each.measured for each in outcomes.values() if each.measured is not None]
    waited = [each for each in measured if "idle" in each.flags]
    if spec.question.clock == "wall" or len(waited) <= len(measured) / 2:
        return []
    longest = max(waited, key=lambda each: each.wall_ns)
    wall, cpu = duration_text(longest.wall_ns / 1e9), duration_text(longest.cpu_ns / 1e9)
    found = f"{len(waited)} of {len(measured)} runs slept most of their time, such as {wall} with {cpu} of CPU time"
    advice = 'if waiting counts (a server, other processes), set clock = "wall" in [target]: now CPU time decides'
    facts = {"idle": len(waited), "measured": len(measured), "clock": spec.question.clock}
    return [Finding("clock", "warning", found, advice, facts)]


def _unfit(spec: CampaignSpec, outcome: RunOutcome) -> Finding:
    advice = "free what the machine is out of: a campaign would wait for it, and then stop"
    return Finding("answers", "failed", _story(spec, outcome), advice, exit_code=STORAGE)


def _whom(spec: CampaignSpec, tried: int) -> str:
    """Say which configurations were tried; on a space the default, perhaps favourites, and a random draw."""
    if spec.question.proposer is None:
        return f"{tried} of {len(spec.configurations)} configurations"
    favourites = tried - 2
    between = f", {favourites} favourite{'s' if favourites > 1 else ''}" if favourites else ""
    return f"the default{between} and a random draw"


_HARMLESS = (Verdict.ANSWERED, Verdict.CAPPED)


def _not_started(spec: CampaignSpec, outcome: RunOutcome) -> Finding:
    advice = "check that the program exists, may be executed and is made for this machine; the same for a generator"
    if _is_function(spec):
        advice = "import the module in a fresh Python and call the function yourself; the same for a generator"
    return Finding("answers", "failed", _story(spec, outcome), advice)


def _story(spec: CampaignSpec, outcome: RunOutcome) -> str:
    """Return what happened to a run, with the command or the call to try it oneself and the program's last words."""
    request, measured = outcome.request, outcome.measured
    element = spec.question.stream.at(request.instance)
    how = spec.question.program.how_started(request.config, element.instance, element.seed)
    name = spec.configurations[request.config].name
    said = b"" if measured is None else measured.stderr_tail.strip() or measured.stdout_tail.strip()
    last = said.decode("utf-8", "replace").splitlines()[-3:]
    story = f"Configuration {name!r}: {outcome.detail or 'no answer'}. {how}"
    return f"{story}. It said: {' / '.join(last)}" if last else story


def _is_function(spec: CampaignSpec) -> bool:
    return isinstance(spec.question.program, FunctionProgram)


def _advice(spec: CampaignSpec, outcome: RunOutcome) -> str:
    if _is_function(spec):
        return _advice_on_functions(outcome)
    wrapper = spec.question.program.describe().get("wrapper")
    return _advice_on_commands(outcome) if wrapper is None else _advice_on_wrappers(outcome, str(wrapper))


def _advice_on_wrappers(outcome: RunOutcome, wrapper: str) -> str:
    if outcome.verdict in (Verdict.CRASH, Verdict.UNKNOWN):
        return (
            f"run the command yourself; target.wrapper = {wrapper!r} says how it is called and what it has to print "
            "(docs/wrappers.md)"
        )
    return _advice_on_commands(outcome)


def _advice_on_commands(outcome: RunOutcome) -> str:
    match outcome.verdict:
        case Verdict.CRASH:
            return "run the command yourself; if that exit code means an answer, add it to target.exit_codes"
        case Verdict.UNKNOWN:
            return (
                "compare target.answer and target.exit_codes, or target.until, with what the program prints and "
                "returns; if it stopped itself, take away its own time limit"
            )
        case Verdict.WRONG:
            return "the program, the known answer or the verifier is wrong; run the command yourself"
        case Verdict.MEMOUT:
            return "raise target.memory"
        case Verdict.OUTPUT:
            return "make the program print less, or raise target.output_limit"
        case Verdict.WALL:
            return 'the program sleeps, or the machine is too busy; set clock = "wall", or raise target.wall_factor'
        case None | Verdict.ANSWERED | Verdict.CAPPED | Verdict.CANCELLED:
            return "run the command yourself"
        case Verdict.LOST | Verdict.INTERRUPTED | Verdict.BLOCKED:
            return "run the command yourself"
        case _:
            assert_never(outcome.verdict)


def _advice_on_functions(outcome: RunOutcome) -> str:
    match outcome.verdict:
        case Verdict.UNKNOWN:
            return (
                "a function answers by returning something that is not false, 0 or empty; return True, or a dict with "
                "the keys answer, solved and seconds"
            )
        case Verdict.WRONG:
            return "the function or the known answer is wrong; make the call yourself"
        case Verdict.MEMOUT:
            return "raise target.memory"
        case Verdict.OUTPUT:
            return "make the function print less, or raise target.output_limit"
        case Verdict.WALL:
            return 'the function sleeps, or the machine is too busy; set clock = "wall", or raise target.wall_factor'
        case None | Verdict.ANSWERED | Verdict.CAPPED | Verdict.CANCELLED | Verdict.CRASH:
            return "make the call yourself, in a fresh Python"
        case Verdict.LOST | Verdict.INTERRUPTED | Verdict.BLOCKED:
            return "make the call yourself, in a fresh Python"
        case _:
            assert_never(outcome.verdict)


def compare_answers(spec: CampaignSpec, outcomes: dict[int, RunOutcome]) -> list[Finding]:
    """Compare what the configurations answered on the same instance; nothing if fewer than two have answered."""
    said = {
        config: each.measured.answer
        for config, each in outcomes.items()
        if each.verdict is Verdict.ANSWERED and each.measured is not None and each.measured.answer is not None
    }
    if len(said) < 2:
        return []
    first, right = next(iter(said.items()))
    odd = next((config for config, answer in said.items() if contradicts(right, answer, spec.question.tolerance)), None)
    other = odd if odd is not None else next((config for config in said if not _same(said[config], right, spec)), None)
    facts = {spec.configurations[config].name: answer.decode("utf-8", "replace") for config, answer in said.items()}
    if other is None:
        return [Finding("same answers", "well", f"{len(said)} configurations gave the same answer", facts=facts)]
    names = [spec.configurations[config].name for config in (first, other)]
    found = f"on the first instance {names[0]!r} answered {facts[names[0]]!r} and {names[1]!r} {facts[names[1]]!r}"
    if odd is None:
        advice = (
            "they differ as texts, which captime does not compare; if one of them is wrong, give a verifier or "
            "instances.answers. A group in target.answer marks the part that counts, such as '^o ([0-9]+)'"
        )
        return [Finding("same answers", "warning", found, advice, facts)]
    if not spec.settings.conflicts:
        advice = "one of them is wrong, and compare_answers = false lets it win; give a verifier or instances.answers"
        return [Finding("same answers", "warning", found, advice, facts)]
    advice = (
        "one of them is wrong, and a campaign would stop here; give the right answers (instances.answers), a verifier "
        "(target.verifier), a wider target.tolerance, or leave the wrong configuration out"
    )
    return [Finding("same answers", "failed", found, advice, facts)]


def _same(answer: bytes, other: bytes, spec: CampaignSpec) -> bool:
    """Return whether two answers say the same; one that says nothing differs from none."""
    return agrees(answer, other, spec.question.tolerance) or meaning(answer) is None


def try_cap(spec: CampaignSpec, trial: Trial, outcomes: dict[int, RunOutcome]) -> list[Finding]:
    """Cut a run of the program in the middle, and see that nothing of it is left."""
    if not outcomes:
        return []
    config = max(outcomes, key=lambda each: outcomes[each].runtime)
    whole = outcomes[config].runtime
    captime = max(_SHORTEST, whole / 2)
    outcome = trial.run(config, 0, captime)
    left = trial.survivors()
    over = max(0.0, outcome.cost - captime)
    facts = {"captime": captime, "overshoot": over, "survivors": left, "verdict": str(outcome.verdict)}
    name = spec.configurations[config].name
    if left:
        advice = "give another isolation (cgroup2 is the strictest), and report it: nothing may survive"
        return [Finding("cap", "failed", f"{left} processes of {name!r} outlived its captime", advice, facts)]
    if outcome.verdict is not Verdict.CAPPED:
        if whole < 2 * _SHORTEST:
            found = f"{name!r} takes {duration_text(whole)}, too short to be cut in the middle"
            return [Finding("cap", "note", found, "nothing needs to be done", facts)]
        ended = "?" if outcome.verdict is None else outcome.verdict.value
        found = f"{name!r} took {duration_text(whole)}, was given half of that, and still ended as {ended}"
        return [Finding("cap", "note", found, "its times vary; see repeatability", facts)]
    found = f"{name!r} was stopped at {duration_text(captime)}, {over * 1e3:.1f} ms late, and no process of it was left"
    return [Finding("cap", "well", found, facts=facts)]


def try_escape(isolation: str | None, folder: Path, *, memory: int | None = None) -> list[Finding]:
    """Return a program that does its best to survive: it forks, leaves its session and ignores signals.

    Args:
        isolation: The level that was asked for; None for the best.
        folder: Of the scenario.
        memory: The limit on the memory of runs; None for none.
    """
    stream = FiniteStream([Instance("none", value="none")], "given")
    runaway = CommandProgram(
        stream,
        [Configuration("runaway")],
        [sys.executable, "-I", "-S", "-c", _ESCAPE],
        folder=folder,
        conditions=Conditions(environment=environment_of(None, {})),
        success=Success(),
    )
    with Trial(runaway, isolation) as trial:
        outcome = trial.run(0, 0, 0.2)
        left, level, overhead = trial.survivors(), trial.executor.isolation, trial.executor.overhead
        limits_memory = trial.executor.limits_memory
    facts: dict[str, Any] = {
        "isolation": level,
        "survivors": left,
        "added_seconds": overhead.added,
        "worst": overhead.worst,
    }
    found = f"{level}: a program that forks and leaves its session was stopped, {left} of its processes survived"
    if left or outcome.verdict is not Verdict.CAPPED:
        advice = "run captime where it may use control groups (cgroup2), and report it: nothing may survive"
        return [Finding("isolation", "failed", found, advice, facts)]
    findings = [_isolation(level, found, facts)]
    if memory is not None and not limits_memory:
        findings.append(_watched_memory(memory))
    told = (
        f"{overhead.added * 1e3:.1f} ms per run on top of the program itself (at worst {overhead.worst * 1e3:.1f} ms)"
    )
    findings.append(Finding("overhead", "well", told, facts={"added": overhead.added, "worst": overhead.worst}))
    return findings


_OWN_GROUP = "start captime in a control group of its own: systemd-run --user --scope -p Delegate=yes captime run ..."
# What each level cannot hold; docs/measuring.md says more.
_GAPS = {
    "cgroup2": "",
    "subreaper": "It does not hold a daemon whose run kills both its supervisor and the guardian above that",
    "posix": "It does not hold a daemon that starts a session and empties its environment",
}


def _isolation(level: str, found: str, facts: dict[str, Any]) -> Finding:
    if not _GAPS[level]:
        return Finding("isolation", "well", found, facts=facts)
    advice = f"nothing needs to be done for a program that means no harm; otherwise {_OWN_GROUP}"
    return Finding("isolation", "note", f"{found}. {_GAPS[level]}", advice, facts)


def _watched_memory(memory: int) -> Finding:
    found = (
        f"no control group limits memory here, so the {memory / 1e6:,.0f} MB of target.memory are watched by looking "
        "every 20 ms; what lies in /dev/shm or in a memfd and is mapped by no process is not seen"
    )
    return Finding("memory", "warning", found, f"if the program keeps data there, {_OWN_GROUP}", {"limit": memory})


def try_repeats(spec: CampaignSpec, trial: Trial, outcomes: dict[int, RunOutcome], *, needed: bool) -> list[Finding]:
    """Repeat a run with the same seed: how much do its times differ?

    Args:
        spec: The scenario.
        trial: Where.
        outcomes: What came back before.
        needed: Whether the procedure repeats runs or the claim is about exactly these instances, so that it matters for
            the guarantee.
    """
    answered = {config: each for config, each in outcomes.items() if each.verdict is Verdict.ANSWERED}
    if not answered:
        return []
    config = min(answered, key=lambda each: abs(answered[each].runtime - 0.5))
    captime = max(10 * answered[config].runtime, 1.0)
    again = [answered[config], *(trial.run(config, 0, captime) for _ in range(_REPEATS - 1))]
    times = [each.runtime for each in again if each.verdict is Verdict.ANSWERED]
    spread, median = max(times) - min(times), statistics.median(times)
    name = spec.configurations[config].name
    found = (
        f"{len(times)} of {_REPEATS} runs of {name!r} with one seed answered, in {duration_text(min(times))} to "
        f"{duration_text(max(times))}"
    )
    facts = {"seconds": times, "spread": spread, "declared": spec.question.program.repeatable, "needed": needed}
    same = len(times) == _REPEATS and spread <= max(_SAME_SHARE * median, _SAME_SECONDS)
    if same and (spec.question.program.repeatable or not needed):
        return [Finding("repeatability", "well", found, facts=facts)]
    if same:
        advice = "set target.repeatable = true, or pass the seed to the program"
        return [Finding("repeatability", "failed", f"{found}, but nothing says that it repeats itself", advice, facts)]
    if needed and spec.question.population is Population.THESE:
        return [_differs_on_a_set(spec, found, facts)]
    if needed:
        advice = "use procedure = 'race', which repeats no run that has ended, or pass the seed to the program"
        return [Finding("repeatability", "failed", f"{found}; {spec.question.procedure} repeats runs", advice, facts)]
    advice = (
        "nothing needs to be done: the race repeats no run that has ended. One that is lost or stopped early is made "
        "again only if the program says that it repeats itself; else it counts as unfinished for ever"
    )
    return [Finding("repeatability", "note", found, advice, facts)]


def _differs_on_a_set(spec: CampaignSpec, found: str, facts: dict[str, Any]) -> Finding:
    """Return what different times mean for a claim about exactly these instances."""
    if not spec.settings.check_repeatability:
        advice = (
            "target.repeatable = true says that it takes the same time again; leave it out unless a busy machine is "
            "the reason"
        )
        return Finding("repeatability", "warning", found, advice, facts)
    if spec.question.population_said:
        advice = "set instances.population = 'drawn', or pass the seed to the program"
        told = f"{found}; the claim about exactly these instances needs the same time again"
        return Finding("repeatability", "failed", told, advice, facts)
    advice = (
        "nothing needs to be done: captime run tries a few pairs of runs. If they differ too much, its claim is about "
        "more instances like these, not about exactly these"
    )
    return Finding("repeatability", "note", found, advice, facts)
