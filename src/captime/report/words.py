"""The summary of a result, and its statement in plain words; and what runs on which slot.

Numbers are rounded outward: what is printed is never stronger than what holds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from captime.campaign.abort_rules import HOPELESS, UNANSWERED
from captime.certificate import Certificate, Population
from captime.ledger.ownership import SlotUse
from captime.procedures.survey import SURVEY
from captime.scenario.spec import Goal
from captime.utilities.formula import duration_text

Support = Literal["checked", "assumed", "doubtful"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that the certificate rests on.

    Attributes:
        words: What.
        standing: Whether this was looked up; None where the source does not say.
    """

    words: str
    standing: Support | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was asked, what came out, and what it rests on.

    One record for the terminal, `--json`, `status`, the report and the dashboard, whatever it was made from: a campaign
    that has just ended, a ledger, or a simulation. What the source does not know is None.

    Attributes:
        certificate: The statement; None before the first.
        names: Of the configurations, by index; on a space there may be more than the certificate speaks of.
        utility: What answers are worth, as text.
        procedure: Name of the procedure.
        options: Its options, as given.
        bound: The bound it used.
        goal: What was asked for.
        seed: From which instances and captimes were drawn.
        length: How many positions the stream has; None also for a stream without end.
        rounds: Decisions taken.
        runs: Executions.
        cpu_seconds: What they cost, by the clock in use.
        wall_seconds: How long it took, all calls together.
        clock: `cpu` or `wall`.
        accounting: How runs that are made again are counted; None of real programs, where every run costs its time.
        left: How many candidates are left.
        stopped: Why it ended, by the word that a ledger has for it; None while it has not.
        running: Whether a process is at work on it.
        runs_everything: Whether every run of the set was ordered at once, because nothing was cheaper.
        pool: How many configurations there are by now, if there may be more than the certificate speaks of.
        draws: On a space, how many of those that the certificate speaks of were drawn at random.
        seeds: With how many seeds the program runs each instance; 0 if it is given none.
        candidates: What configurations are called.
        rests_on: What the certificate assumes, in words a user can check.
        warnings: What makes the certificate doubtful, or might.
        more: Further labelled lines, which only this source has.
    """

    certificate: Certificate | None
    names: Sequence[str]
    utility: str
    procedure: str
    options: Mapping[str, object]
    bound: str
    goal: Goal | None
    rounds: int
    runs: int
    cpu_seconds: float
    left: int | None
    seed: int | None = None
    length: int | None = None
    wall_seconds: float | None = None
    clock: str = "cpu"
    accounting: str | None = None
    stopped: str | None = None
    running: bool = False
    runs_everything: bool = False
    pool: int = 0
    draws: int | None = None
    seeds: int = 0
    candidates: str = "configurations"
    rests_on: Sequence[Assumption] = ()
    warnings: Sequence[str] = ()
    more: Sequence[tuple[str, str]] = ()

    @property
    def left_of(self) -> int:
        """Return the size of the pool, including configurations added after the certificate."""
        return self.pool if self.certificate is None else max(self.pool, self.certificate.n_configs)

    @property
    def epsilon_goal(self) -> float:
        """Return the epsilon asked for; 0 for none."""
        return 0.0 if self.goal is None else self.goal.epsilon

    @property
    def cost(self) -> str:
        """Return what it cost, in words."""
        runs = f"{self.runs:,} runs"
        if self.accounting is not None:
            told = (
                "free of charge (a hypothetical oracle)" if self.procedure == "oracle" else cpu_time(self.cpu_seconds)
            )
            return f"{told}, {runs}, {self.accounting} accounting"
        wall = f", {duration_text(self.wall_seconds)} on the clock" if self.wall_seconds else ""
        return f"{cpu_time(self.cpu_seconds, self.clock)}, {runs}{wall}"

    @property
    def why_stopped(self) -> str:
        """Return why it ended, in words, or that it is running."""
        if self.stopped is None:
            return (
                "it has not: it is running, or was cut off"
                if self.running
                else "it was cut off; the same command resumes it"
            )
        reasons = STOPPED if self.accounting is None else STOPPED_ON_RECORD
        return why_stopped(self.stopped, self.goal or Goal(0.0), reasons)

    @property
    def next_steps(self) -> str:
        """Return what can be done if the campaign has used up its instances; nothing otherwise."""
        on_programs = self.accounting is None and self.procedure != SURVEY
        if self.certificate is None or self.stopped is None or not on_programs:
            return ""
        return next_steps(self.stopped, self.certificate, self.epsilon_goal, self.length)


def certificate_json(held: Certificate, names: Sequence[str]) -> dict[str, object]:
    """Return the statement itself as one JSON object."""
    return {
        "config": held.config,
        "config_name": names[held.config],
        "epsilon": held.epsilon,
        "delta": held.delta,
        "gamma": held.gamma,
        "utility_low": held.utility_low,
        "utility_high": held.utility_high,
        "challenger": None if held.challenger is None else names[held.challenger],
        "mode": held.mode,
        "delta_shares": dict(held.shares),
        "population": held.population.value,
        "instances": held.instances,
        "instances_run": held.instances_run,
        "other": None if held.other is None else certificate_json(held.other, names),
    }


def summary_json(summary: Summary) -> dict[str, object]:
    """Return the part of the JSON object that campaigns and simulations have in common."""
    held = summary.certificate
    return {
        "certificate": None if held is None else certificate_json(held, summary.names),
        "procedure": summary.procedure,
        "options": {name: str(value) for name, value in summary.options.items()},
        "bound": summary.bound,
        "utility": summary.utility,
        "epsilon_goal": summary.epsilon_goal,
        "n_configs": len(summary.names),
        "cpu_seconds": summary.cpu_seconds,
        "cpu_days": summary.cpu_seconds / 86400,
        "accounting": summary.accounting or "restart",
        "runs": summary.runs,
        "rounds": summary.rounds,
        "candidates_left": summary.left,
        "stopped": summary.stopped,
        "runs_everything": summary.runs_everything,
        "seed": summary.seed,
        "assumptions": [each.words for each in summary.rests_on],
    }


def draws_among(origins: Sequence[str], n_configs: int) -> int | None:
    """Return how many of the first `n` were drawn at random; None for a list, where origins do not say it."""
    return sum(origin == "random" for origin in origins[:n_configs]) if "random" in origins else None


def seeds_of(identity: Mapping[str, object]) -> int:
    """Return with how many seeds each instance is run, from what a ledger says was asked; 0 for a program without.

    Of a function nothing is on record but that it repeats itself, so it is taken to be given its seed.
    """
    target, instances = identity.get("target"), identity.get("instances")
    if not isinstance(target, Mapping):
        return 0
    listed = identity.get("configurations")
    entries = listed.get("list") if isinstance(listed, Mapping) else None
    own = [each.get("command") for each in entries or () if isinstance(each, Mapping)]
    words = [word for command in (target.get("command"), *own) if isinstance(command, list | tuple) for word in command]
    given = any("{seed}" in str(word) for word in words) or any(target.get(name) for name in ("function", "wrapper"))
    seeds = instances.get("seeds", 1) if isinstance(instances, Mapping) else 1
    return int(str(seeds)) if given else 0


def printable(name: str) -> str:
    r"""A name that cannot move the cursor or colour the terminal: control characters become \xNN."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


LONGEST_MESSAGE = 4000
"""How many characters of a message are shown; the number of further ones is stated."""


def message(text: str) -> str:
    """Return a message as it may be shown on a terminal: every line printable, and not endless.

    Names of files, configurations and TOML keys stand in messages as they are; here, and nowhere before, what would
    move the cursor or colour the terminal is escaped.
    """
    shown = "\n".join(map(printable, text.split("\n")))
    left = len(shown) - LONGEST_MESSAGE
    return shown if left <= 0 else f"{shown[:LONGEST_MESSAGE]}… ({left:,} more characters)"


def rounded_up(value: float, digits: int = 4) -> str:
    """The value, rounded away from what is claimed."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def rounded_down(value: float, digits: int = 4) -> str:
    """The value, rounded away from what is claimed."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def time_word(clock: object) -> str:
    """What the seconds of runs are called: they are CPU time only if they were measured on that clock.

    Args:
        clock: Of the scenario, `cpu` or `wall`.
    """
    return "run time" if clock == "wall" else "CPU time"


def cpu_time(seconds: float, clock: object = "cpu") -> str:
    """What runs took, for people: days as the papers do, or the unit that fits; with the name of the clock."""
    if seconds >= 86400:
        days = f"{seconds / 86400:,.1f}"
        return f"{days} days of run time" if clock == "wall" else f"{days} CPU days"
    return f"{duration_text(seconds)} of {time_word(clock)}"


def surely(delta: float) -> str:
    """Return the beginning of a sentence that holds with probability 1 - delta, rounded down."""
    return f"With probability at least {rounded_down(100 * (1 - delta), 2).rstrip('0').rstrip('.')} %"


UNCERTIFIED = "Nothing is certified yet."


def statement(summary: Summary) -> str:
    """Return the certificate as one or two sentences, each about the instances it names."""
    held = summary.certificate
    if held is None:
        return UNCERTIFIED
    claim = _claim(summary, held)
    return f"{claim} {_other_claim(summary, held.other)}" if held.other is not None and _claims(held) else claim


def _claims(held: Certificate) -> bool:
    """Whether anything is certified about a choice between configurations."""
    return held.n_configs > 1 and held.mode != "nothing" and held.epsilon < 1.0


def _set_words(summary: Summary, held: Certificate) -> str:
    """Return the set that a claim about exactly these instances is about, with its seeds."""
    count, seeds = held.instances or 0, summary.seeds
    if seeds > 1:
        return f"exactly these {count // seeds:,} instances with {seeds} seeds each"
    return f"exactly these {count:,} instances" + (" with these seeds" if seeds else "")


def _run_words(held: Certificate) -> str:
    """Return how much of the set was run: all of it makes the claim certain."""
    count, run = held.instances or 0, held.instances_run or 0
    if run >= count:
        return f"all {count:,} were run with it"
    if held.gamma is not None:
        # Even all runs would leave it to chance what was drawn from the space.
        return f"{run:,} of {count:,} were run with it"
    return f"certain if all were run; {run:,} of {count:,} were"


def _other_claim(summary: Summary, other: Certificate) -> str:
    """Return the sentence about the other population."""
    if other.population is Population.THESE:
        about = f"On {_set_words(summary, other)}"
        if other.epsilon >= 1.0:
            return f"{about}: nothing is certified yet."
        near = f"within {rounded_up(other.epsilon)}" if other.epsilon > 0 else "the best"
        return f"{about}: {near} ({_run_words(other)})."
    about = "If they are a fair sample of what is to come"
    if other.epsilon >= 1.0:
        return f"{about}: nothing is certified yet."
    return f"{about}: {f'within {rounded_up(other.epsilon)}' if other.epsilon > 0 else 'the best'}."


def _claim(summary: Summary, held: Certificate) -> str:
    """Return the sentence about the population that was chosen."""
    name = printable(summary.names[held.config])
    if held.n_configs == 1:
        return f"{name} is the only configuration, so there is nothing to compare it with."
    if held.mode == "nothing":
        return (
            f"{name} is what {summary.procedure} recommends among {held.n_configs} configurations. It certifies "
            "nothing about utility."
        )
    if held.epsilon >= 1.0:
        return f"Nothing is certified yet; {name} is only the first guess among {held.n_configs} {summary.candidates}."
    best = f"the best of these {held.n_configs} {summary.candidates}"
    if held.gamma == 0.0:
        best = "the best there can be, in this space or any other"
    near = f"is within {rounded_up(held.epsilon)} of {best}" if held.epsilon > 0 else f"is {best}"
    if held.gamma:
        near = _near_in_space(summary, held, held.gamma)
    if held.population is Population.THESE:
        # Two commas at least stand before it on a space.
        comma = "" if held.gamma is None else ","
        near += f"{comma} on {_set_words(summary, held)} ({_run_words(held)})"
    if held.delta == 0:
        return f"On this table, where nothing is left to chance, {name} {near}."
    return f"{surely(held.delta)}, {name} {near}."


def _near_in_space(summary: Summary, held: Certificate, gamma: float) -> str:
    """Both halves of the claim (docs/engine.md): about the space, which draws speak for, and about each one tried."""
    space = f"the best configuration outside the top {rounded_up(100 * gamma, 1)} % of the space"
    first = "first " if summary.left_of > held.n_configs else ""
    draws = "" if summary.draws is None else f" ({summary.draws} of them random draws)"
    tried = f"each of the {first}{held.n_configs} configurations tried{draws}"
    if held.epsilon > 0:
        return f"is within {rounded_up(held.epsilon)} of {space}, and of {tried}"
    return f"is as good as {space}, and as {tried}"


def gamma_words(held: Certificate, digits: int = 4) -> str:
    """The gamma of a certificate; a dash while nothing is claimed, because then it says nothing either.

    Gamma 0 is the statement about every configuration, in this space or any other: it rests on the leader's own bound,
    not on draws, and is given up for one about the pool that says more.
    """
    if held.gamma is None or held.epsilon >= 1.0:
        return "–"
    return "0 (whole space)" if held.gamma == 0.0 else rounded_up(held.gamma, digits)


def lines(summary: Summary) -> list[tuple[str, str]]:
    """Return the rest of the certificate, as labelled lines; none before the first."""
    held = summary.certificate
    if held is None:
        return []
    interval = f"between {rounded_down(held.utility_low)} and {rounded_up(held.utility_high)} under {summary.utility}"
    found = [
        *(("warning", words) for words in summary.warnings),
        *claim_lines(held),
        ("expected utility", interval),
        ("cost", summary.cost),
        ("candidates left", left_words(summary)),
    ]
    if held.challenger is not None and held.epsilon > 0:
        found.append(("closest rival", printable(summary.names[held.challenger])))
    found += [("stopped because", summary.why_stopped), ("procedure", _procedure_line(summary))]
    if summary.runs_everything:
        found.append(("way", RUNS_EVERYTHING))
    if held.delta > 0 and held.n_configs > 1:
        each = "for each of the two claims, " if held.other is not None else ""
        found.append(("delta covers", each + _COVERS[held.mode]))
    steps = summary.next_steps
    return [*found, *([("next steps", steps)] if steps else []), *summary.more]


def left_words(summary: Summary) -> str:
    """Return how many candidates are left of how many."""
    return f"{summary.left or 0:,} of {summary.left_of:,}"


def claim_lines(held: Certificate) -> list[tuple[str, str]]:
    """Return both claims as labelled lines, with what each is good for; none where there is only one."""
    if held.other is None or not _claims(held):
        return []
    return [_good_for(each) for each in (held, held.other)]


def _good_for(claim: Certificate) -> tuple[str, str]:
    near = f"within {rounded_up(claim.epsilon)}" if claim.epsilon < 1.0 else "nothing yet"
    match claim.population:
        case Population.THESE:
            use = "for a set that is used again, such as a benchmark or a nightly suite"
            return "these instances", f"{near}: {use}"
        case Population.DRAWN:
            use = "for instances to come, if these are a fair sample of them; only more instances can narrow it further"
            return "more like them", f"{near}: {use}"


_COVERS = {
    "nothing": "nothing: this procedure promises nothing about utility",
    "selection": "the recommendation and its interval, at all times (not every other configuration's bounds at once)",
    "simultaneous": "every configuration's interval at all times, hence the recommendation",
}


RUNS_EVERYTHING = (
    "every configuration runs every instance: on a set this small that is the cheapest way, because too few runs are "
    "left for a comparison by chance to decide sooner"
)
"""Said where a procedure ordered every run of the set at once."""


def _procedure_line(summary: Summary) -> str:
    options = "".join(f", {name} = {value}" for name, value in summary.options.items())
    rounds = summary.rounds
    return f"{summary.procedure}{options}; bound {summary.bound}; {rounds:,} decision{'s' if rounds != 1 else ''}"


def slot_names(seats: Sequence[SlotUse]) -> list[str]:
    """As short as each can be told: the machine where there are several, the worker where a machine has several."""
    workers: dict[str, set[str]] = {}
    for each in seats:
        workers.setdefault(each.seat.host, set()).add(each.seat.worker)
    # The first part of a machine's name is enough if no two share it.
    short = {host: host.partition(".")[0] for host in workers}
    if len(set(short.values())) < len(short):
        short = {host: host for host in workers}
    told = []
    for seat in [each.seat for each in seats]:
        port = seat.worker.rpartition(":")[2] if len(workers[seat.host]) > 1 else ""
        host = short[seat.host] if len(workers) > 1 or port else ""
        place = ":".join(filter(None, (host, port)))
        told.append(f"slot {seat.slot}" + (f" on {place}" if place else ""))
    return told


def busy_words(seats: Sequence[SlotUse], unseated: int) -> str:
    """How many slots are busy, and how many runs wait for one.

    Args:
        seats: All of them.
        unseated: Runs that are on none, as far as is known.
    """
    if not seats:
        return f"{unseated:,} {'run' if unseated == 1 else 'runs'} begun" if unseated else "nothing just now"
    busy = sum(seated.run is not None for seated in seats)
    waiting = f", {unseated:,} more given out" if unseated else ""
    return f"{busy:,} of {len(seats):,} {'slot' if len(seats) == 1 else 'slots'} busy{waiting}"


def age_words(seconds: float, captime: float | None) -> str:
    """How long a run has been under way, and how long it may be."""
    shown = seconds if captime is None else min(seconds, captime)
    limit = "" if captime is None else f" of {duration_text(captime)}"
    return f"{duration_text(round(shown, 1) if shown >= 1.0 else round(shown, 3))}{limit}"


# Why a campaign ended, in words, and what can be done then.

STOPPED = {
    "ledger": "its ledger was lost or cannot be written",
    "epsilon": "it reached the epsilon asked for",
    "decided": "the question about the commands is decided",
    "single": "only one candidate was left",
    "instances": "the instances are used up",
    "configurations": "there are no more configurations to draw",
    "budget": "the budget of stop.cpu is spent",
    "deadline": "its wall-clock time is over",
    "interrupted": "it was interrupted",
    "cluster": "the cluster is gone",
    "machine": "the machine was out of disk, memory, processes or descriptors",
    "idle": "there was nothing left to run",
    HOPELESS: "every run failed",
    UNANSWERED: "no run ever answered",
}
"""Why a campaign ended, by the word that its ledger has for it."""
STOPPED_ON_RECORD = {
    **STOPPED,
    "instances": "the recorded data are used up",
    "budget": "the CPU budget is spent",
    "done": "it had done all it wanted to do",
}
"""The same of a procedure on recorded runtimes."""

SAME_TIME = "A configuration takes the same time on the same instance when it is run again with its seed."
"""The assumption about runs that are made twice."""


# Epsilon falls like one over the root of the number of instances.
_GROWS_LIKE = 2.0


def next_steps(stopped: str, held: Certificate, goal: float, n_instances: int | None) -> str:
    """Return what can be done once the instances are used up and the goal is not reached; nothing otherwise.

    Args:
        stopped: Why the campaign ended, by the word that its ledger has for it.
        held: The last certificate.
        goal: The epsilon asked for; 0 for none.
        n_instances: How many there were.
    """
    if stopped != "instances" or held.epsilon <= goal:
        return ""
    if held.population is Population.THESE:
        return (
            "everything was run; what is still open lies behind the longest captime or in runs that were given up: "
            "raise target.ceiling if it is set, or accept this epsilon"
        )
    enough = ""
    if goal > 0.0 and held.epsilon < 1.0 and n_instances:
        enough = f", about {_round_number(n_instances * (held.epsilon / goal) ** _GROWS_LIKE):,} in all for {goal:g}"
    return (
        f"add instances at the end of the list{enough}; or ask about exactly these, with a new ledger: "
        "instances.population = 'these', which ends at 0 and needs a program that repeats itself, or "
        "instances.sampling = 'replace', which draws them again"
    )


def _round_number(count: float) -> int:
    """Return a count with no more digits than a guess deserves."""
    unit = int("1" + "0" * max(0, len(str(int(count))) - 2))
    return math.ceil(count / unit) * unit


def why_stopped(word: str, goal: Goal, reasons: Mapping[str, str] = STOPPED) -> str:
    """Why a campaign ended; on a space with the goals that it reached."""
    if word == "epsilon" and goal.gamma and goal.stop in ("both", "gamma"):
        return f"it reached the {'gamma' if goal.stop == 'gamma' else 'epsilon and gamma'} asked for"
    return reasons.get(word, word)
