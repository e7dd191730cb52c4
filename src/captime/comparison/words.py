"""A comparison in words: one sentence, a table, Markdown for a pull request, and one JSON object."""

from dataclasses import replace

from captime.certificate import Population
from captime.comparison.comparing import Comparison
from captime.comparison.pairs import BASE, CANDIDATE, Difference, Gate, GateVerdict, WorthMore
from captime.report.campaigned import campaign_json, summary_and_table
from captime.report.configurations import as_markdown as table_in_markdown
from captime.report.configurations import as_text as table_in_text
from captime.report.configurations import caption
from captime.report.words import Summary, printable, rounded_down, rounded_up, statement, surely

_BADGES = {
    GateVerdict.NOT_WORSE: ":white_check_mark:",
    GateVerdict.WORSE: ":x:",
    GateVerdict.UNDECIDED: ":grey_question:",
}
_MARKDOWN = "\\`*_{}[]<>#|~"


def sentence(comparison: Comparison, summary: Summary) -> str:
    """Return what is certified, in one sentence.

    Args:
        comparison: What came out.
        summary: Of its campaign.
    """
    match comparison.decision:
        case Gate() as gate:
            return _of_gate(comparison, gate)
        case WorthMore() as asked:
            return _of_difference(comparison, asked)
        case None:
            return statement(replace(summary, candidates="commands"))


def lines(comparison: Comparison, summary: Summary) -> list[tuple[str, str]]:
    """Return what stands below the table, as labelled lines; see `sentence`."""
    found = [("warning", words) for words in summary.warnings]
    if isinstance(comparison.decision, Gate):
        found.append(("difference", _interval(comparison.decision)))
    elif comparison.decision is not None:
        found.append(("compared", f"{comparison.decision.n:,} pairs of runs on the same instances"))
    return [
        *found,
        ("utility", summary.utility),
        ("cost", summary.cost),
        ("stopped because", summary.why_stopped),
        ("about", _about(comparison)),
        ("ledger", str(comparison.campaign.record)),
    ]


def as_text(comparison: Comparison) -> str:
    """Return the sentence, the table and the lines, for a console that needs no colour."""
    summary, table = summary_and_table(comparison.campaign)
    rows = [] if table is None else ["", table_in_text(table), caption(table, len(table)), ""]
    told = lines(comparison, summary)
    width = max(len(label) for label, _ in told)
    below = [f"{label.ljust(width)}  {printable(value)}" for label, value in told]
    return "\n".join([sentence(comparison, summary), *rows, *below])


def as_markdown(comparison: Comparison) -> str:
    """Return a comment for a pull request."""
    verdict = comparison.verdict
    badge = f"{_BADGES[verdict]} " if isinstance(verdict, GateVerdict) else ""
    summary, table = summary_and_table(comparison.campaign)
    rows = [] if table is None else [table_in_markdown(table), "", f"<sub>{_plain(caption(table, len(table)))}</sub>"]
    commands = [
        f"- **{_plain(each.name)}**: `{each.text}`; counts as an answer: {_plain(each.counts)}"
        for each in comparison.candidates
    ]
    below = [f"- {label}: {_plain(value)}" for label, value in lines(comparison, summary)]
    detail = ["<details><summary>commands, cost and ledger</summary>", "", *commands, *below, "", "</details>"]
    return "\n".join(
        [f"### {badge}captime compare", "", f"**{_plain(sentence(comparison, summary))}**", "", *rows, "", *detail]
    )


def as_json(comparison: Comparison) -> dict[str, object]:
    """Return the object of `captime run --json`, with one more key for what only a comparison has."""
    decision = comparison.decision
    gate = decision if isinstance(decision, Gate) else None
    summary, table = summary_and_table(comparison.campaign)
    return {
        **campaign_json(comparison.campaign, summary, table),
        "comparison": {
            "sentence": sentence(comparison, summary),
            "verdict": None if decision is None else decision.verdict.value,
            "decided": comparison.decided,
            "not_worse_by": None if gate is None else gate.margin,
            "at_least": decision.share if isinstance(decision, WorthMore) else None,
            "difference_low": None if gate is None else gate.low,
            "difference_high": None if gate is None else gate.high,
            "pairs": None if decision is None else decision.n,
            "proposed_utility": comparison.proposal or None,
            "commands": [
                {
                    "name": each.name,
                    "command": list(each.words),
                    "answer": each.answer,
                    "exit_codes": list(each.exit_codes) if each.words else None,
                    "solver": each.solver or None,
                }
                for each in comparison.candidates
            ],
        },
    }


def _of_gate(comparison: Comparison, gate: Gate) -> str:
    base, candidate = (printable(comparison.candidates[which].name) for which in (BASE, CANDIDATE))
    match gate.verdict:
        case GateVerdict.NOT_WORSE:
            return f"{surely(gate.delta)}, {candidate} is not worse than {base} by more than {gate.margin:g}."
        case GateVerdict.WORSE:
            return f"{surely(gate.delta)}, {candidate} is worse than {base}."
        case GateVerdict.UNDECIDED:
            return f"Undecided: {candidate} may be worse than {base} by more than {gate.margin:g}, or not worse at all."


def _of_difference(comparison: Comparison, asked: WorthMore) -> str:
    first, second = (printable(each.name) for each in comparison.candidates)
    share = f"{100 * asked.share:g} %"
    match asked.verdict:
        case Difference.FIRST:
            return f"{surely(asked.delta)}, {first} is worth at least {share} more than {second}."
        case Difference.SECOND:
            return f"{surely(asked.delta)}, {second} is worth at least {share} more than {first}."
        case Difference.NEITHER:
            return f"{surely(asked.delta)}, neither of {first} and {second} is worth {share} more than the other."
        case Difference.UNDECIDED:
            return f"Undecided: whether {first} or {second} is worth {share} more than the other is not known yet."


def _interval(gate: Gate) -> str:
    """Return the two bounds on the difference, rounded outward."""
    low = f"at least {rounded_down(gate.low)}" if gate.low > -1.0 else ""
    high = f"at most {rounded_up(gate.high)}" if gate.high < 1.0 else ""
    ends = " and ".join(each for each in (low, high) if each) or "not known yet"
    return f"{ends} in expected utility, second minus first; from {gate.n:,} pairs of runs"


def _about(comparison: Comparison) -> str:
    stream = comparison.campaign.question.stream
    if comparison.campaign.question.population is Population.THESE:
        return f"the mean over exactly these {stream.length:,} instances, each run at most once"
    if stream.population == "finite":
        return f"the mean over exactly these {stream.n_instances:,} instances, drawn with replacement"
    return "all instances that these are a fair sample of"


def _plain(text: str) -> str:
    """Return a text whose characters mean nothing to Markdown."""
    return "".join(f"\\{each}" if each in _MARKDOWN else each for each in printable(text))
