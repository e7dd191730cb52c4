"""What every check of a certificate begins with and leaves behind; what it checks is its own business."""

from dataclasses import dataclass, field

import numpy as np

from captime.certificate import Certificate
from captime.errors import LedgerDamaged
from captime.skeptic.agreement import Trust
from captime.skeptic.books import Books, Story
from captime.skeptic.question import Question


@dataclass(slots=True)
class Check:
    """A check of one certificate against the rows before it.

    Args:
        books: What those rows say.
        question: What was asked.
        held: The certificate.

    Attributes:
        account: What was found, one line each.
        left_open: What the rows leave open, with a sentence each.
    """

    books: Books
    question: Question
    held: Certificate
    account: list[str] = field(default_factory=list)
    left_open: dict[Trust, str] = field(default_factory=dict)


def check_prefix(config: int, story: Story) -> None:
    """Refuse a configuration that was run on a position and not on one before it."""
    missing = np.flatnonzero(story.position != np.arange(len(story)))
    if len(missing):
        raise LedgerDamaged(
            f"configuration {config} has runs on position {story.position[missing[0]]} and none on position "
            f"{missing[0]}: a position was stepped over"
        )
