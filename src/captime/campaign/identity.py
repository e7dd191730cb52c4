"""Whether a ledger belongs to the question that is asked: what was run must be what is run."""

from collections.abc import Mapping

from captime.campaign.question import Question
from captime.errors import ScenarioDiffers
from captime.ledger import Ledger
from captime.scenario.identity import difference

_GOAL = "goal"


def remembered(question: Question) -> dict[str, object]:
    """What a new ledger is told about the question; the first goal is not part of its identity."""
    return {**question.identity, _GOAL: question.epsilon}


def check_identity(ledger: Ledger, question: Question) -> None:
    """Refuse to mix runs of one question with those of another."""
    before = {name: value for name, value in ledger.scenario.items() if name != _GOAL}
    differs = difference(before, _plain(question.identity))
    if differs:
        listed = "".join(f"\n  {line}" for line in differs)
        raise ScenarioDiffers(
            f"{ledger.path}: this ledger belongs to another scenario. It differs in:{listed}\nPut that back to go on, "
            "or begin a new ledger with --ledger"
        )


def _plain(identity: Mapping[str, object]) -> dict[str, object]:
    """As it comes back from a file: tuples are lists there."""
    return {name: _listed(value) for name, value in identity.items()}


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _listed(each) for name, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value
