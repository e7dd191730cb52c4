"""What a campaign on real programs has to tell: as a summary for words and pictures, and as one JSON object."""

import math
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.campaign.result import CampaignResult
from captime.certificate import Certificate, Population
from captime.errors import CaptimeError
from captime.report.configurations import ConfigurationTable, configuration_table
from captime.report.ledger_data import LedgerData, Trend, read_story, trend_of_leader
from captime.report.words import SAME_TIME, Assumption, Summary, draws_among, seeds_of, summary_json
from captime.runs import Verdict
from captime.streams.finite import InstanceStream
from captime.utilities.formula import duration_text
from captime.utilities.suggest import ALL_WELL, LITTLE

IN_THE_ORDER_GIVEN = "in the order given, which has to be random"
"""Orders of instances that are not shuffled."""
_SUCCESS = ("answered", "capped")
FLAGS = {
    "contended": "had to wait for a core",
    "idle": "slept much of their time",
    "drifted": "ran while the machine was faster or slower than at first",
    "clocks-disagree": "have two clocks that disagree",
    "reported-disagrees": "report another time than was measured",
    "leftovers": "left processes behind, which were killed",
    "suspended": "were suspended for a while",
    "swapping": "ran while the machine was swapping",
    "throttled": "ran while cores were slowed down or withheld",
    "no-disk": "were lost because a disk was full",
    "no-inodes": "were lost because a file system had no room for another file",
    "read-only": "were lost because the scratch folder was read-only",
    "no-scratch": "were lost because the scratch folder was gone",
    "no-memory": "were lost because the machine was out of memory",
    "no-processes": "were lost because the machine was out of processes",
    "no-descriptors": "were lost because the machine was out of file descriptors",
}
"""What runs did that carry a warning, by the word that their ledger has for it."""
_ADVICE = {
    "contended": "use fewer jobs, or a quieter machine",
    "drifted": "is something else running?",
    "swapping": "use fewer jobs, or set target.memory",
    "throttled": "cool the machine, or raise the container's share",
}


def summary_and_table(result: CampaignResult) -> tuple[Summary, ConfigurationTable | None]:
    """Return everything there is to tell about a campaign that has ended, with its ledger read once.

    The table is None if the ledger cannot be read any more; `result.trouble` says why.
    """
    story = _story(result)
    outcome, question = result.outcome, result.question
    summary = Summary(
        certificate=result.certificate,
        names=question.names,
        utility=str(question.utility),
        procedure=question.procedure,
        options=question.options,
        bound=result.bound,
        goal=question.goal,
        seed=question.seed,
        length=question.stream.length,
        rounds=outcome.rounds,
        runs=int(outcome.runs.sum()),
        cpu_seconds=result.cpu_seconds,
        wall_seconds=outcome.wall_seconds,
        clock=question.clock,
        left=len(outcome.candidates),
        stopped=outcome.stopped,
        runs_everything=outcome.runs_everything,
        pool=len(question.names),
        draws=draws_among([config.origin for config in question.configs], result.certificate.n_configs),
        seeds=seeds_of(question.identity),
        rests_on=[Assumption(words) for words in assumptions(result)],
        warnings=_warnings(result, None if story is None or result.repeats else trend_of_leader(story)),
        more=[("runs", verdicts(result)), ("ledger", f"{result.ledger} (head {result.head[:12]})")],
    )
    return summary, None if story is None else configuration_table(story)


def _story(result: CampaignResult) -> LedgerData | None:
    try:
        return read_story(result.record, result.question.utility)
    except CaptimeError:
        # The certificate is shown whatever has happened to the file; `result.trouble` says what has.
        if result.trouble is None:
            raise
        return None


def _warnings(result: CampaignResult, trend: Trend | None) -> list[str]:
    """Return what makes the certificate doubtful, or might."""
    census = result.census
    disturbed = [
        f"measurement degraded: {census.flags[flag] / census.counted:.0%} of the runs {FLAGS[flag]}; {_ADVICE[flag]}"
        for flag in census.disturbed_by
    ]
    lost = [] if result.trouble is None else [str(result.trouble)]
    guarded, counted = (
        census.verdicts[Verdict.WALL.value],
        census.counted - census.verdicts[Verdict.CANCELLED.value],
    )
    asked = doubts(
        Showing(counted, census.answered, census.flags["idle"], guarded, result.question.clock, result.means)
    )
    return [
        *lost,
        *asked,
        *disturbed,
        *([] if trend is None else [f"{result.config_name}: {trend.words}"]),
        *result.warnings,
    ]


# Fewer answers than this share are nearly none.
_NEARLY_NONE = 0.05
# Fewer runs say too little for any of these warnings.
_ENOUGH = 20
# From this number of runs that slept most of the time on, the program counts as one that waits.
_WAITS = 0.2


@dataclass(frozen=True, slots=True)
class Showing:
    """How a campaign has gone so far, as far as warnings about the question itself need it.

    Attributes:
        counted: Runs that count, but for those that were cancelled.
        answered: Those of them that answered.
        idle: Those that slept most of their time.
        guarded: Those that the wall-clock guard stopped.
        clock: `cpu` or `wall`.
        means: What each configuration seems to be worth; not a number where that is unknown.
    """

    counted: int
    answered: int
    idle: int
    guarded: int
    clock: str
    means: FloatArray


def doubts(seen: Showing) -> list[str]:
    """What speaks against the question as it was asked: the utility, what counts as an answer, the clock."""
    if seen.counted < _ENOUGH:
        return [f"not one of {seen.counted:,} runs answered"] if seen.counted and not seen.answered else []
    found = []
    if seen.answered < _NEARLY_NONE * seen.counted:
        few = f"only {seen.answered:,}" if seen.answered else "not one"
        found.append(
            f"{few} of {seen.counted:,} runs answered: the utility may fall too soon for this program, or its answers "
            "are not recognised; `captime doctor` compares the two"
        )
    means = seen.means[np.isfinite(seen.means)]
    if len(means) and means.max() < LITTLE:
        found.append(
            f"every configuration seems to be worth less than {LITTLE:g}, the best one {means.max():.2f}, so they "
            "hardly differ whatever they do: choose a utility that falls later if slower answers are of use"
        )
    elif len(means) and means.min() > ALL_WELL:
        found.append(
            f"every configuration seems to be worth more than {ALL_WELL:g}, so they hardly differ whatever they do: "
            "choose a utility that falls sooner if speed matters"
        )
    waiting = max(seen.idle, seen.guarded)
    if seen.clock == "cpu" and waiting > _WAITS * seen.counted:
        found.append(
            f"{waiting:,} of {seen.counted:,} runs slept most of their time, and were measured by their CPU time: if "
            'waiting counts, set clock = "wall" in [target], with a new ledger'
        )
    return found


def verdicts(result: CampaignResult) -> str:
    """How many runs ended how, the good ones first."""
    counts = result.census.verdicts
    order = sorted(counts, key=lambda verdict: (verdict not in _SUCCESS, -counts[verdict]))
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order) or "none"


def time_words(clock: object, time: object) -> str:
    """Return whose time a certificate is about.

    Args:
        clock: `cpu` or `wall`, by which runs are stopped.
        time: `measured` or `reported`.
    """
    ours = "CPU time of the whole process tree" if clock == "cpu" else "wall-clock time"
    if time != "reported":
        return ours
    return (
        f"what the program reports of itself; runs are stopped by {ours}, and a run that was stopped before it had "
        "reported counts from 0 to 1"
    )


def _repeated(result: CampaignResult) -> list[str]:
    """What is assumed about runs that are made a second time."""
    if result.repeats:
        return [SAME_TIME]
    said = ["Every run counts once, with a captime that was fixed before it started."]
    once = result.question.short_captimes is False
    if once and result.question.options.get("effort") == "search":
        said.append(
            "Trial runs did not show that the program takes the same time again, so no run is stopped early and made "
            "again. If it does, target.repeatable = true says so."
        )
    elif once and not result.question.population_said:
        said.append(
            "Trial runs did not show that the program takes the same time again, so the claim is about more instances "
            "like these, not about exactly these. If it does, target.repeatable = true says so."
        )
    again = result.census.verdicts["lost"] + result.census.verdicts["cancelled"]
    if again and result.question.program.repeatable:
        words = "1 run was" if again == 1 else f"{again:,} runs were"
        said.append(
            f"{words} lost or stopped early; it is assumed that a run takes the same time when it is repeated with its "
            "seed."
        )
    return said


def assumptions(result: CampaignResult) -> list[str]:
    """What the certificate rests on, in words a user can check; what was checked is said to be."""
    question, census = result.question, result.census
    said = []
    if question.population is Population.THESE:
        grouped = question.stream.describe().get("groups") is not None
        said += these_words(
            question.stream.length or 0,
            f" (seed {question.seed})",
            result.certificate,
            grouped=grouped,
            seeded=seeds_of(question.identity) > 0,
        )
    elif question.stream.population == "finite":
        said.append(
            f'"Best" means best on average over exactly these {question.stream.n_instances:,} instances, drawn with '
            f"replacement (seed {question.seed})."
        )
    elif question.stream.n_instances is None:
        said.append(f"Instances are independent draws of the generator, with seeds derived from {question.seed}.")
    else:
        given = question.stream.describe().get("sampling") == "given"
        order = IN_THE_ORDER_GIVEN if given else f"in random order (seed {question.seed})"
        said.append(
            f"The {question.stream.n_instances:,} instances are independent draws from the distribution of "
            f"interest, run {order}, each once."
        )
    said += _duplicates(question.stream)
    said += _repeated(result)
    clock = time_words(question.clock, question.time)
    here = f"on this machine as it was (isolation {result.isolation}, {result.jobs} at once)"
    said.append(f"Time is {clock}, {result.place or here}.")
    if math.isfinite(question.ceiling):
        said.append(f"No run was given more than {duration_text(question.ceiling)}; longer runtimes stay unknown.")
    failed = sum(census.verdicts[word] for word in ("crash", "wrong", "unknown", "memout", "output"))
    if failed:
        said.append(
            f"{failed:,} of {census.counted:,} runs failed (no right answer); they never finish and are worth 0."
        )
    if not question.program.repeatable:
        said.append("The program cannot repeat a run, so runs that were stopped early or lost stay open for ever.")
    if question.proposer is None and question.stream.population != "finite" and speaks_of_draws(result.certificate):
        said.append("The configurations were not chosen by runs on these instances.")
    if result.learned:
        said.append(result.learned)
    given_up = census.verdicts[Verdict.BLOCKED.value] + census.verdicts[Verdict.WALL.value]
    if given_up:
        runs, they = ("1 run was", "it counts") if given_up == 1 else (f"{given_up:,} runs were", "they count")
        said.append(f"{runs} given up (lost too often, or the wall-clock guard); {they} both ways.")
    return said


def _duplicates(stream: InstanceStream) -> list[str]:
    """Return how many instances hold the same as another one, in a sentence; nothing if none does."""
    described = stream.describe()
    listed, seeds = described.get("list"), described.get("seeds", 1)
    if not isinstance(listed, list) or not isinstance(seeds, int):
        return []
    count = len(listed) // seeds
    again = count - len({digest for _, digest in listed})
    return [f"{again:,} of {count:,} instances hold the same as another one; each of them counts."] if again > 0 else []


def these_words(count: int, seed: str, held: Certificate, *, grouped: bool, seeded: bool) -> list[str]:
    """Return what a claim about exactly these instances rests on, in sentences.

    Args:
        count: How many members the set has.
        seed: From which their order was drawn, such as ` (seed 7)`.
        held: The certificate.
        grouped: Whether instances are listed in groups of variations.
        seeded: Whether the program is given seeds.
    """
    each = ", each with its seed" if seeded else ""
    best = f'"Best" means best on average over exactly these {count:,} instances{each}'
    said = [f"{best}, run in random order{seed}; nothing is assumed about where they come from."]
    if grouped:
        said.append("They are one member of every group, chosen by the seed; the others are not part of the set.")
    if held.gamma is not None:
        said.append("They were not chosen by the results of configurations that were drawn from the space.")
    if held.other is not None:
        said.append(
            "Only the claim about instances to come assumes that these are independent draws from the same "
            "distribution."
        )
    return said


def speaks_of_draws(held: Certificate) -> bool:
    """Return whether a certificate has a claim about the distribution that the instances were drawn from."""
    return held.population is Population.DRAWN or held.other is not None


def campaign_json(result: CampaignResult, summary: Summary, table: ConfigurationTable | None) -> dict[str, object]:
    """Return everything a program could want to know: the keys of a simulation, and those that only real runs have."""
    outcome, question, names = result.outcome, result.question, result.question.names
    return {
        **summary_json(summary),
        "source": result.ledger.stem,
        "settings": dict(result.settings),
        "configurations": None if table is None else table.as_json(),
        # A run that is made again is made from its start; what continuing it would have cost is not known.
        "cpu_seconds_restart": result.cpu_seconds,
        "cpu_seconds_resume": None,
        "wall_seconds": outcome.wall_seconds,
        "statuses": dict(sorted(result.census.verdicts.items())),
        "flags": dict(sorted(result.census.flags.items())),
        "measurement_degraded": bool(result.census.disturbed_by),
        "warnings": list(summary.warnings),
        "candidates": [names[config] for config in outcome.candidates.tolist()],
        "captimes": dict(zip(names, _finite(outcome.captimes), strict=True)),
        "samples": dict(zip(names, outcome.samples.tolist(), strict=True)),
        "cpu_seconds_by_config": dict(zip(names, outcome.seconds.tolist(), strict=True)),
        "cpu_seconds_by_purpose": outcome.spending or None,
        "capping_floor": float(outcome.capping[result.certificate.config]),
        "crossed": 0,
        "sampling": question.stream.describe().get("sampling"),
        "population": "finite" if question.population is Population.THESE else question.stream.population,
        "jobs": result.jobs,
        "order": result.order,
        "isolation": result.isolation,
        "clock": question.clock,
        "time": question.time,
        "resumed": result.resumed,
        "ledger": str(result.ledger),
        "head": result.head,
        "notes": [],
    }


def _finite(values: FloatArray) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
