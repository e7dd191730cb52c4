"""The audit of a ledger: every row, then the certificate."""

from dataclasses import dataclass
from os import PathLike
from typing import Literal

from captime.errors import LedgerDamaged
from captime.ledger import Certified, LedgerReader
from captime.ledger.encoding import certified_of
from captime.ledger.schema import CERTIFICATE
from captime.skeptic.books import Books
from captime.skeptic.fixed import FixedCheck
from captime.skeptic.pool import PoolCheck
from captime.skeptic.question import Question, read_question
from captime.skeptic.race import RaceCheck

_FIXED = ("up", "oup", "naive", "fixed-captimes")


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; a ledger with something wrong never gets one, but an error that says what.

    Attributes:
        verdict: `confirmed`: the rows are whole and support the newest certificate. `nothing`: they are whole, and no
            certificate has been written yet. `not-verifiable`: they are whole, but nobody here can say whether they
            support it.
        account: What was checked, one sentence each.
        why: Why it is not verifiable; empty otherwise.
        certified: The newest certificate.
        rows: How many rows there are.
        head: Hash of the last one.
    """

    verdict: Literal["confirmed", "nothing", "not-verifiable"]
    account: tuple[str, ...]
    why: str
    certified: Certified | None
    rows: int
    head: str


def audit(path: str | PathLike[str]) -> Audit:
    """Check that no row of a ledger was changed, removed or added, and that its newest certificate follows from them.

    Raises:
        LedgerDamaged: something is wrong; the message names the first row that is, or what does not follow.
    """
    with LedgerReader(path) as reader, reader.snapshot():
        end = reader.check_end()
        newest = reader.last_certificate_row()
        question = read_question(reader.scenario)
        try:
            return _audited(reader, newest, question, end)
        except LedgerDamaged as error:
            told = str(error)
            raise LedgerDamaged(told if told.startswith(str(reader.path)) else f"{reader.path}: {told}") from error


def _audited(reader: LedgerReader, newest: int, question: Question | str, end: str) -> Audit:
    books, rows = Books(), 0
    held: Certified | None = None
    account: list[str] = []
    why = question if isinstance(question, str) else ""
    before = ""
    for table, row in reader.walk():
        if table is CERTIFICATE:
            certified = certified_of(row)
            if certified.head != before:
                raise LedgerDamaged(f"row {row[0]} is a certificate that rests on another head than the row before it")
            if certified.sequence == newest:
                held = certified
                if isinstance(question, Question):
                    account, why = _checked(books, question, certified)
        books.take(table, row)
        rows, before = row[0], row[-1].hex()
    told = [
        f"{rows:,} rows, each in its place with the hash it was written with, none missing between them",
        end,
        f"{books.counted:,} outcomes count, each of the attempt that was due; {books.orphans:,} do not",
        *account,
    ]
    verdict: Literal["confirmed", "nothing", "not-verifiable"] = "not-verifiable" if why else "confirmed"
    return Audit(verdict if held is not None else "nothing", tuple(told), why, held, rows, before)


def _checked(books: Books, question: Question, certified: Certified) -> tuple[list[str], str]:
    """What was found about a certificate, or why nobody can say."""
    if question.procedure == "race":
        check = RaceCheck(books, question, certified.certificate)
        check.check()
        return check.account, ""
    if question.procedure == "pool":
        pool = PoolCheck(books, question, certified.certificate)
        pool.check()
        return pool.account, ""
    if question.procedure in _FIXED:
        fixed = FixedCheck(books, question, certified.certificate)
        fixed.check()
        return fixed.account, fixed.why
    return [], f"nobody has written a check of procedure {question.procedure} yet"
