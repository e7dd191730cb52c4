"""The audit of a ledger: every row, then the certificate."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

from captime.certificate import RULES, Certificate, Population
from captime.errors import LedgerDamaged, UtilityError
from captime.ledger import Certified, LedgerReader
from captime.ledger.rows import certified_of
from captime.ledger.schema import CERTIFICATE
from captime.skeptic.agreement import Agreement, Trust
from captime.skeptic.books import Books
from captime.skeptic.fixed import FixedCheck
from captime.skeptic.fixed_set import SetCheck
from captime.skeptic.pool import PoolCheck
from captime.skeptic.question import Question, read_question
from captime.skeptic.race import RaceCheck
from captime.skeptic.set_pool import SetPoolCheck

CONFLICT = "conflict"
"""Kind of the note that two configurations contradict each other."""
_FIXED = ("up", "oup", "naive", "fixed-captimes")


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; a ledger with something wrong never gets one, but an error that says what.

    Attributes:
        verdict: `confirmed`: the rows are whole and support the newest certificate. `nothing`: they are whole, and no
            certificate has been written yet. `not-verifiable`: they are whole, but no check here can say whether they
            support it.
        account: What was checked, one sentence each.
        why: Why it is not verifiable; empty otherwise.
        trusted: What was taken on trust because the reader said so, one sentence each.
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
    trusted: tuple[str, ...] = ()


def audit(path: str | PathLike[str], trust: Collection[Trust] = ()) -> Audit:
    """Check that no row of a ledger was changed, removed or added, and that its newest certificate follows from them.

    Args:
        path: The ledger.
        trust: What it may leave open. A ledger that leaves open anything else is not verifiable.

    Raises:
        LedgerDamaged: something is wrong; the message names the first row that is, or what does not follow.
    """
    with LedgerReader(path) as reader:
        return audit_of(reader, trust)


def audit_of(reader: LedgerReader, trust: Collection[Trust] = ()) -> Audit:
    """Check a ledger that is open, as of one moment; `audit` says the rest."""
    with reader.snapshot():
        end = reader.check_end()
        newest = reader.last_certificate_row()
        rules = reader.scenario.get("rules", 1)
        try:
            if not isinstance(rules, int) or not 1 <= rules <= RULES:
                return _rows_alone(reader, rules, end)
            question = read_question(reader.scenario)
            return _audited(reader, newest, question, end, frozenset(trust))
        except LedgerDamaged as error:
            told = str(error)
            raise LedgerDamaged(told if told.startswith(str(reader.path)) else f"{reader.path}: {told}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, UtilityError, ValueError) as error:
            # The JSON of a forger can hold anything in any place.
            raise LedgerDamaged(
                f"{reader.path}: what stands there is not what captime writes ({type(error).__name__}: {error}); it "
                "cannot be confirmed"
            ) from error


def _rows_alone(reader: LedgerReader, rules: object, end: str) -> Audit:
    """Check the rows of a ledger whose rules of deciding this captime does not know."""
    rows, before = 0, ""
    for _, row in reader.walk():
        rows, before = row["seq"], row["hash"].hex()
    told = f"{rows:,} rows, each in its place with the hash it was written with, none missing between them"
    why = (
        f"it was decided by rules {rules}, and this captime checks rules 1 to {RULES}; verify it with captime "
        f"{reader.captime_version} or a later one"
    )
    held = reader.last_certificate()
    return Audit("nothing" if held is None else "not-verifiable", (told, end), why, held, rows, before)


def _audited(reader: LedgerReader, newest: int, question: Question | str, end: str, trust: frozenset[Trust]) -> Audit:
    books, rows = Books(must_be_ordered=reader.scenario.get("order") == "arrival"), 0
    agreement = Agreement(reader.scenario, trust)
    held: Certified | None = None
    found = _Found(why=question if isinstance(question, str) else "")
    before = ""
    for table, row in reader.walk():
        agreement.take(table, row)
        if table is CERTIFICATE:
            certified = certified_of(row)
            if certified.head != before:
                raise LedgerDamaged(
                    f"row {row['seq']} is a certificate that rests on another head than the row before it"
                )
            if certified.sequence == newest:
                held = certified
                if isinstance(question, Question):
                    found = _checked(books, question, certified)
        books.take(table, row)
        rows, before = row["seq"], row["hash"].hex()
    left_open = {**agreement.left_open, **found.left_open}
    told = [
        f"{rows:,} rows, each in its place with the hash it was written with, none missing between them",
        end,
        f"{books.counted:,} outcomes count, each of the attempt that was due; {books.orphans:,} do not",
        *agreement.account(),
        *found.account,
    ]
    wanting = [f"{sentence} (--trust {each} accepts that)" for each, sentence in left_open.items() if each not in trust]
    why = "; ".join([*([found.why] if found.why else []), *_contradictions(books, newest), *wanting])
    verdict: Literal["confirmed", "nothing", "not-verifiable"] = "not-verifiable" if why else "confirmed"
    return Audit(
        verdict if held is not None else "nothing",
        tuple(told),
        why if held is not None else "",
        held,
        rows,
        before,
        tuple(sentence for each, sentence in left_open.items() if each in trust),
    )


def _contradictions(books: Books, newest: int) -> list[str]:
    """Return answers that contradict each other and ended the campaign; if it was resumed, its user allowed them."""
    told: list[Mapping[str, Any]] = [
        note.facts for note in books.notes if note.kind == CONFLICT and note.sequence > newest
    ]
    return [
        f"configurations {' and '.join(map(repr, facts['configs']))} contradict each other on {facts['instance']!r}: "
        "one of them is wrong, so nothing is certified"
        for facts in told[:1]
    ]


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found about a certificate: an account, why it cannot be checked, what it leaves open."""

    account: Sequence[str] = ()
    why: str = ""
    left_open: Mapping[Trust, str] = field(default_factory=dict)


def _checked(books: Books, question: Question, certified: Certified) -> _Found:
    """Check a certificate against the rows before it."""
    if certified.certificate.population is Population.THESE:
        return _checked_on_set(books, question, certified.certificate)
    if question.procedure == "race":
        check = RaceCheck(books, question, certified.certificate)
        check.check()
        return _Found(check.account, left_open=check.left_open)
    if question.procedure == "pool":
        pool = PoolCheck(books, question, certified.certificate)
        pool.check()
        return _Found(pool.account, left_open=pool.left_open)
    if question.procedure in _FIXED:
        fixed = FixedCheck(books, question, certified.certificate)
        fixed.check()
        return _Found(fixed.account, fixed.why)
    if question.procedure == "survey":
        return _Found([_check_survey(books, question, certified.certificate)])
    return _Found(why=f"there is no check of procedure {question.procedure} yet")


def _checked_on_set(books: Books, question: Question, held: Certificate) -> _Found:
    """Check a claim about exactly the instances of a set."""
    checks = {"race": SetCheck, "pool": SetPoolCheck}
    if question.procedure not in checks:
        return _Found(why=f"there is no check of procedure {question.procedure} on a set of instances yet")
    check = checks[question.procedure](books, question, held)
    check.check()
    return _Found(check.account, left_open=check.left_open)


def _check_survey(books: Books, question: Question, held: Certificate) -> str:
    """Every run of a table got the captime that was asked for, and nothing is claimed."""
    if (held.utility_low, held.utility_high) != (0.0, 1.0) or (held.epsilon < 1.0 and held.n_configs > 1):
        raise LedgerDamaged("the certificate claims something, but a ledger of `captime measure` shows nothing")
    captime = question.options.get("captime")
    for config, runs in enumerate(books.runs):
        for position, run in runs.items():
            if run.captime != captime:
                raise LedgerDamaged(
                    f"row {run.began} gives configuration {config} {run.captime!r} s on position {position}, but "
                    f"{captime!r} s were asked for"
                )
    return f"the table was measured with a captime of {captime:g} s; nothing is claimed"
