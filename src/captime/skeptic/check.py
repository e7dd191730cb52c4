"""What every check of a certificate begins with and leaves behind; what it checks is its own business."""

from dataclasses import dataclass, field

from captime.certificate import Certificate
from captime.skeptic.agreement import Trust
from captime.skeptic.books import Books
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
