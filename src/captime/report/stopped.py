"""Why a campaign ended, in words."""

from captime.campaign.goals import Goal
from captime.campaign.objections import HOPELESS, UNANSWERED

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


def why_stopped(word: str, goal: Goal) -> str:
    """Why a campaign ended; on a space with the goals that it reached."""
    if word == "epsilon" and goal.gamma and goal.stop in ("both", "gamma"):
        return f"it reached the {'gamma' if goal.stop == 'gamma' else 'epsilon and gamma'} asked for"
    return STOPPED.get(word, word)
