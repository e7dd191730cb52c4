"""Why a campaign ended, in words, and what can be done then."""

import math

from captime.campaign.abort_rules import HOPELESS, UNANSWERED
from captime.campaign.goals import Goal
from captime.certificate import Certificate, Population

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


def why_stopped(word: str, goal: Goal) -> str:
    """Why a campaign ended; on a space with the goals that it reached."""
    if word == "epsilon" and goal.gamma and goal.stop in ("both", "gamma"):
        return f"it reached the {'gamma' if goal.stop == 'gamma' else 'epsilon and gamma'} asked for"
    return STOPPED.get(word, word)
