import pytest

from captime.programs.judge import AnswerBook, agrees, contradicts


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (b"SATISFIABLE", b"UNSAT", True),
        (b"s SATISFIABLE", b"sat", False),
        (b"unsat", b"s UNSATISFIABLE", False),
        (b"42", b"42.0000001", False),
        (b"42", b"43", True),
        (b"-1e6", b"-1000000.1", False),
        (b"done", b"finished", False),
        (b"SAT", b"42", False),
        (b"SAT", b"unknown", False),
        (b"\xff\xfe", b"\xff", False),
    ],
)
def test_only_what_cannot_both_be_right_is_a_contradiction(one: bytes, other: bytes, expected: bool) -> None:
    """Satisfiable against unsatisfiable, and optimal values that differ."""
    assert contradicts(one, other) is expected
    assert contradicts(other, one) is expected


def test_a_known_answer_has_to_be_met_exactly_or_within_the_tolerance() -> None:
    """Words by meaning, numbers by size; a known answer that says nothing agrees with everything."""
    assert agrees(b"SATISFIABLE", b"sat")
    assert agrees(b"10.4", b"10", tolerance=0.05)
    assert not agrees(b"10.4", b"10")
    assert not agrees(b"anything", b"sat")
    assert agrees(b"anything", b"?")


def test_the_first_contradiction_is_noticed_and_names_both_sides() -> None:
    """A planted wrong solver among five is found at its first disagreement (T14)."""
    book = AnswerBook()
    for config in range(4):
        assert book.note("a.cnf", config, b"SATISFIABLE") is None
    assert book.note("b.cnf", 4, b"UNSATISFIABLE") is None
    found = book.note("a.cnf", 4, b"UNSATISFIABLE")
    assert found is not None
    assert (found.instance, found.first, found.second) == ("a.cnf", 0, 4)
    assert "both cannot be right" in str(found)


def test_silence_contradicts_nobody() -> None:
    """No answer, or one that says nothing, is not remembered."""
    book = AnswerBook()
    assert book.note("a", 0, None) is None
    assert book.note("a", 0, b"UNKNOWN") is None
    assert book.note("a", 1, b"SAT") is None
    assert book.note("a", 2, b"UNSAT") is not None
