"""The certificate of a ledger in plain words: the statement, what it rests on, and how good the measurements are."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from captime.campaign.changes import goal_on_record
from captime.campaign.external_runs import KIND as ASKED_AND_TOLD
from captime.campaign.identity import population_on_record
from captime.campaign.result import disturbing
from captime.campaign.transfer import NOTE, learned_words
from captime.certificate import Certificate, Population
from captime.ledger.ownership import Owner, boot_id
from captime.ledger.reading import VERDICTS, LedgerReader
from captime.ledger.rows import Certified, Noted
from captime.procedures import ON_A_SET, PROCEDURES
from captime.report.campaigned import (
    FLAGS,
    IN_THE_ORDER_GIVEN,
    Showing,
    doubts,
    speaks_of_draws,
    these_words,
    time_words,
)
from captime.report.known_runs import ANSWERED, KINDS, OPEN, verdict_words
from captime.report.ledger_data import LedgerData, everything_on_record, trend_of_leader
from captime.report.words import SAME_TIME, STOPPED, Assumption, Summary, Support, draws_among, seeds_of
from captime.runs import Verdict
from captime.utilities.formula import duration_text

OVER = frozenset({"closed", "interrupted"})
"""States in which no process carries the campaign out, so nothing runs."""


def summary_of_story(story: LedgerData) -> Summary:
    """Return everything there is to tell about a campaign as it stands in its file."""
    held, runs = story.certificate, story.runs
    plain = _on_record(story.scenario, story.notes, held, story.names, story.origins)
    left = int(story.progress.candidates[-1]) if len(story.progress.candidates) else plain.left_of
    return replace(
        plain,
        rounds=story.rounds,
        runs=0 if runs is None else int(runs.attempts.sum()),
        cpu_seconds=0.0 if runs is None else float(runs.cost.sum()),
        wall_seconds=story.wall_seconds,
        left=left,
        running=story.running,
        rests_on=assumptions_on_record(story),
        warnings=doubts_of(story),
    )


def summary_of_ledger(reader: LedgerReader, certified: Certified | None) -> Summary:
    """Return what there is to tell about a ledger without a look at every run.

    Args:
        reader: The ledger.
        certified: One of its certificates; None if there is none yet.
    """
    configs, counts = reader.configs, reader.counts()
    held = None if certified is None else certified.certificate
    names, origins = [config.name for config in configs], [config.origin for config in configs]
    return replace(
        _on_record(reader.scenario, reader.events(), held, names, origins),
        rounds=0 if certified is None else certified.rounds,
        runs=sum(count for count, _ in counts.values()),
        cpu_seconds=sum(seconds for _, seconds in counts.values()) + reader.orphans()[1],
        wall_seconds=None if certified is None else reader.clock(),
        left=None if certified is None else certified.candidates,
        running=reader.in_use,
    )


def _on_record(
    scenario: Mapping[str, object],
    notes: Sequence[Noted],
    held: Certificate | None,
    names: Sequence[str],
    origins: Sequence[str],
) -> Summary:
    """Return what the scenario and the notes of a ledger say by themselves; what its runs say is for the caller."""
    options, seed = scenario.get("options"), scenario.get("seed")
    asked = isinstance(scenario.get("goal"), int | float) or any(note.kind == "goal" for note in notes)
    return Summary(
        certificate=held,
        names=names,
        utility=str(scenario.get("utility", "a utility that is not on record")),
        procedure=str(scenario.get("procedure", "a procedure that is not on record")),
        options=options if isinstance(options, dict) else {},
        bound=bound_on_record(scenario),
        goal=goal_on_record(scenario, notes) if asked else None,
        seed=seed if isinstance(seed, int) else None,
        length=length_on_record(scenario, notes),
        rounds=0,
        runs=0,
        cpu_seconds=0.0,
        clock=str(scenario.get("clock", "cpu")),
        left=None,
        stopped=_end_on_record(notes),
        runs_everything=everything_on_record(notes),
        pool=len(names),
        draws=None if held is None else draws_among(origins, held.n_configs),
        seeds=seeds_of(scenario),
    )


def _end_on_record(notes: Sequence[Noted]) -> str | None:
    """Return why the last call ended, by its word; None if it has not, or was cut off."""
    last = next((note for note in reversed(notes) if note.kind in ("began", "resumed", "stopped")), None)
    return str(last.facts.get("because")) if last is not None and last.kind == "stopped" else None


def length_on_record(scenario: Mapping[str, object], notes: Sequence[Noted]) -> int | None:
    """Return how many positions the stream has by now; None if it has no end."""
    longer = [note.facts.get("length") for note in notes if note.kind == "instances"]
    length = longer[-1] if longer else scenario.get("length")
    return length if isinstance(length, int) else None


def doubts_of(story: LedgerData) -> list[str]:
    """What speaks against the question as it was asked, in sentences."""
    runs = story.runs
    if runs is None:
        return []
    counts = (runs.kind != OPEN) & (runs.verdict != VERDICTS.index(Verdict.CANCELLED))
    seen = Showing(
        counted=int(counts.sum()),
        answered=int((runs.kind == ANSWERED).sum()),
        idle=story.flags.get("idle", 0),
        guarded=int((runs.verdict[counts] == VERDICTS.index(Verdict.WALL)).sum()),
        clock=story.clock,
        means=np.empty(0) if story.scores is None else story.scores.estimate,
    )
    return doubts(seen)


def bound_on_record(scenario: Mapping[str, object]) -> str:
    """The bound that its certificates are drawn from: chosen by an option, or the procedure's own."""
    options = scenario.get("options")
    chosen = options.get("bound") if isinstance(options, dict) else None
    on_set = population_on_record(scenario) is Population.THESE
    procedure = (ON_A_SET if on_set else PROCEDURES).get(str(scenario.get("procedure")))
    own = chosen or getattr(procedure, "bound", None)
    if own is None and procedure is not None and "bound" in (usual := inspect.signature(procedure).parameters):
        own = usual["bound"].default
    return own if isinstance(own, str) else "as documented"


def liveness(*, in_use: bool, owner: Owner | None) -> str:
    """`running`, `closed`, `interrupted` (its process is gone), or `elsewhere` (another machine, not known)."""
    if not in_use or owner is None:
        return "closed"
    if owner.boot != boot_id():
        return "elsewhere"
    return "running" if owner.alive() else "interrupted"


def assumptions_on_record(story: LedgerData) -> list[Assumption]:
    """What the certificate rests on, each with its standing."""
    runs = story.runs
    said = [_in_random_order(story)]
    if story.lottery is not None and runs is not None:
        drawn = "Chance drew captimes before the runs; no run was given more time than its position's draw allows."
        said.append(Assumption(drawn, "checked" if story.lottery.kept(runs) else "doubtful"))
    else:
        said.append(Assumption(SAME_TIME, "assumed"))
    target = story.scenario.get("target")
    told = isinstance(target, dict) and target.get("kind") == ASKED_AND_TOLD
    clock = time_words(story.clock, target.get("time") if isinstance(target, dict) else None)
    doubtful = disturbing(story.flags, 0 if runs is None else int(runs.attempts.sum()))
    standing: Support = "doubtful" if doubtful else "checked" if story.measured else "assumed"
    if told:
        said.append(Assumption("Time is what the caller of AskTell has told.", "assumed"))
    else:
        said.append(Assumption(f"Time is {clock}, on the machine as it was.", standing))
    described = story.scenario.get("instances")
    sampled = isinstance(described, dict) and described.get("sampling") != "replace"
    held = story.certificate
    if story.scenario.get("space") is None and sampled and (held is None or speaks_of_draws(held)):
        said.append(Assumption("The configurations were not chosen by runs on these instances.", "assumed"))
    learned = learned_words(story.notes)
    if learned:
        # Places of instances are worked out when the model is told, and are not worked out again.
        said.append(Assumption(learned, "assumed"))
    conflicts = sum(note.kind == "conflict" for note in story.notes)
    if conflicts:
        said.append(Assumption(f"{conflicts} times two configurations contradicted each other's answers.", "doubtful"))
    whole = f"The ledger is whole (head {story.head[:16]}); captime verify derives the certificate from its rows again."
    said.append(Assumption(f"{story.missing}.", "doubtful") if story.missing else Assumption(whole, "assumed"))
    return said


def _in_random_order(story: LedgerData) -> Assumption:
    """Where every run is made once, a trend in the leader's runs tells that the order was not random."""
    trend = None if story.lottery is None else trend_of_leader(story)
    if trend is None:
        return Assumption(_instances(story), "assumed")
    return Assumption(f"{_instances(story)} But of {story.names[story.leader]}, {trend.words}.", "doubtful")


def _instances(story: LedgerData) -> str:
    described = story.scenario.get("instances")
    known = described if isinstance(described, dict) else {}
    listed, sampling = known.get("list"), known.get("sampling")
    seed = f" (seed {story.scenario['seed']})" if "seed" in story.scenario else ""
    if known.get("population") == Population.THESE and story.certificate is not None:
        members = length_on_record(story.scenario, story.notes) or 0
        grouped, seeded = known.get("groups") is not None, seeds_of(story.scenario) > 0
        return " ".join(these_words(members, seed, story.certificate, grouped=grouped, seeded=seeded))
    if sampling == "replace" and isinstance(listed, list):
        return (
            f'"Best" means best on average over exactly these {len(listed):,} instances, drawn with replacement{seed}.'
        )
    count = f"The {len(listed):,} instances" if isinstance(listed, list) else "Instances"
    order = IN_THE_ORDER_GIVEN if sampling == "given" else f"in an order fixed beforehand{seed}"
    return f"{count} are independent draws from the distribution of interest, run {order}."


def quality(story: LedgerData) -> list[tuple[str, str]]:
    """How the measurements went, as labelled lines."""
    runs = story.runs
    if runs is None:
        return []
    kinds = np.bincount(runs.kind, minlength=len(KINDS)).tolist()
    told = ", ".join(
        f"{count:,} {kind if count == 1 else kind.replace('its', 'their')}"
        for count, kind in zip(kinds, KINDS, strict=True)
        if count
    )
    lines = [("runs", told or "none")]
    verdicts, counts = np.unique(runs.verdict[runs.kind != OPEN], return_counts=True)
    words = [
        f"{count:,} {verdict_words(code)}"
        for code, count in zip(verdicts.tolist(), counts.tolist(), strict=True)
        if verdict_words(code)
    ]
    if words:
        lines.append(("verdicts", ", ".join(words)))
    again = int((runs.attempts - 1).sum())
    if again:
        lines.append(("tried again", f"{again:,} executions beyond the first of their run"))
    if story.orphans:
        lines.append(("not counted", f"{story.orphans:,} outcomes of attempts that had been given up"))
    lines += [
        ("warning", f"{count:,} runs {FLAGS.get(flag, flag)}")
        for flag, count in sorted(story.flags.items())
        # Waiting is what a wall clock measures.
        if count and not (flag == "idle" and story.clock == "wall")
    ]
    if len(lines) == 1 and not story.flags:
        lines.append(("warnings", "none"))
    return lines


def decisions(story: LedgerData, most: int = 12) -> Sequence[tuple[int, str, str]]:
    """The last notes of the campaign: when (ns since 1970), what kind, and what it says; newest first."""
    quiet = {"facts"}
    told = [note for note in story.notes if note.kind not in quiet][-most:]
    return [(note.at_ns, note.kind, note_words(story.names, note.kind, note.facts)) for note in reversed(told)]


def note_words(names: Sequence[str], kind: str, facts: object) -> str:
    """What a note says, in words where we have some."""
    if not isinstance(facts, dict):
        return ""
    if kind == "candidates":
        parts = [
            f"{', '.join(names[int(each)] for each in facts[key][:6] if int(each) < len(names))}"
            f"{' and more' if len(facts[key]) > 6 else ''} {word}"
            for key, word in (("out", "out"), ("back", "back in"))
            if facts.get(key)
        ]
        return "; ".join(parts)
    if kind in _NOTES:
        return _NOTES[kind](facts)
    return ", ".join(f"{name} {value}" for name, value in facts.items())[:200]


def _joined(facts: Mapping[str, object]) -> str:
    listed = facts.get("list")
    names = [_name(each) for each in listed] if isinstance(listed, list) else []
    shown = ", ".join(names[:6]) + (" and more" if len(names) > 6 else "")
    return f"{shown} joined, for positions from {facts.get('earliest', 0)} on"


def _name(described: object) -> str:
    return str(described.get("name", "a configuration")) if isinstance(described, dict) else str(described)


def _longer(facts: Mapping[str, object]) -> str:
    listed = facts.get("list")
    more = len(listed) if isinstance(listed, list) else 0
    return f"{more:,} instance{'' if more == 1 else 's'} added, {facts.get('length')} in all"


def _lessons(facts: Mapping[str, object]) -> str:
    runs, ledger, held_back = facts.get("runs", 0), facts.get("ledger", "a ledger"), facts.get("held_back", 0)
    return f"{runs} runs of {ledger} for the model, {held_back} of them held back at first"


def _ended(facts: Mapping[str, object]) -> str:
    because = str(facts.get("because", ""))
    words = "it reached its goals" if because == "epsilon" else STOPPED.get(because, because)
    clock = facts.get("wall_seconds")
    return f"{words}, {duration_text(round(clock, 1))} on the clock" if isinstance(clock, float) else words


def _stepped(facts: Mapping[str, object]) -> str:
    seconds = facts.get("seconds")
    if not isinstance(seconds, float):
        return "the time of day was set"
    return f"the time of day was set {'forward' if seconds > 0 else 'back'} by {duration_text(abs(seconds))}"


def _unfit(facts: Mapping[str, object]) -> str:
    return f"runs are held back: {facts.get('why', 'the machine is unfit')}"


def _fit(facts: Mapping[str, object]) -> str:
    seconds = facts.get("seconds")
    after = f" after {duration_text(seconds)}" if isinstance(seconds, float) else ""
    return f"the machine is fit again{after}"


def _waits(facts: Mapping[str, object]) -> str:
    return f"{facts.get('idle')} of the first {facts.get('runs')} runs slept most of their time; CPU time counts"


_NOTES = {
    "clock-step": _stepped,
    "configurations": _joined,
    "fit": _fit,
    "instances": _longer,
    NOTE: _lessons,
    "stopped": _ended,
    "unfit": _unfit,
    "waits": _waits,
}
