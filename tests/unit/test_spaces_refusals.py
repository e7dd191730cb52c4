import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from captime.errors import CaptimeError, ScenarioError
from captime.spaces import read_space
from captime.spaces.formats.irace import read_irace
from captime.spaces.formats.pcs import read_pcs
from captime.spaces.formats.section import read_section

PCS = [
    ("a [0, 1]\n", 1, "the line ends, expected [ ... ]"),
    ("a [0, 1] [2]\n", 1, "outside the range"),
    ("a [0, 1] [0.5]x\n", 1, "expected i, l, il"),
    ("a [1, 0] [0.5]\n", 1, "the smaller first"),
    ("a [0, 10] [1]il\n", 1, "logarithmic range begins at 0"),
    ("a [0, 10] [1.5]i\n", 1, "whole number"),
    ("a {x, y} [z]\n", 1, "none of its values"),
    ("a {x, , y} [x]\n", 1, "empty value"),
    ("a {x, x} [x]\n", 1, "stands there twice"),
    ("a {x, y\n", 1, "without its }"),
    ("a something {x} [x]\n", 1, "expected a domain"),
    ("a\n", 1, "expected a domain"),
    ("= 3\n", 1, "expected the name of a parameter"),
    ("\n# nothing\n", 1, "found no declaration"),
    ("a {x} [x]\na {y} [y]\n", 2, "another declaration of a than on line 1"),
    ("a {x, y} [x]\n\nb | a in {x}\n", 3, "no line declares"),
    ("a {x, y} [x]\nb {x} [x]\nb | a in {z}\n", 3, "expected one of its own: x, y"),
    ("a {x, y} [x]\nb {x} [x]\nb | c in {x}\n", 3, "no line declares"),
    ("a {x, y} [x]\nb {x} [x]\nb | a =~ x\n", 3, "expected"),
    ("a {x, y} [x]\nb {x} [x]\nb |\n", 3, "is empty"),
    ("a {x, y} [x]\nb {x} [x]\nb | a == x &&\n", 3, "the expression ends"),
    ("a {x, y} [x]\nb {x} [x]\nb | a > x\n", 3, "has no order"),
    ("a {x, y} [x]\nb {x, y} [x]\na | b == x\nb | a == x\n", 3, "in a circle"),
    ("a {x, y} [x]\n{a=x, b=y}\n", 2, "no line declares"),
    ("a {x, y} [x]\n{a=x\n", 2, "expected a }"),
    ("a {x, y} [x]\n{}\n", 2, "found {}"),
    ("a {x, y} [x]\n{a=x}\n", 2, "default configuration is forbidden"),
    ("a integer [0, 9] [1]\n{a + x > 3}\n", 2, "is it declared"),
    ("a integer [0, 9] [1]\n{a > 3 &| a < 2}\n", 2, "expected"),
    ("a integer [0, 9] [1]\nb real [0, 1] [0]\nb | a == 10\n", 3, "whole number from 0 to 9"),
    ("a integer [0, 9] [1]\nb real [0, 1] [0]\nb | " + "(" * 100 + "a > 1" + ")" * 100, 3, "at most 40"),
    ("a integer [0, 99999999999999999999] [1]\n", 1, "2^53"),
    ("a real [0, 1e999] [1]\n", 1, "expected the two ends"),
]
IRACE = [
    ('a "--a " i (1)\n', 1, "expected the two ends"),
    ('a "--a " i (1, "b * 2")\n', 1, "depend on other parameters"),
    ('a "--a " x (1, 2)\n', 1, "expected one of c, o, i, r"),
    ('a "--a " i, log (1, 2)\n', 1, "expected one of c, o, i, r"),
    ("a --a i (1, 2)\n", 1, "switch in quotation marks"),
    ('a "--a " c ("x, y)\n', 1, "domain"),
    ('a "--a " c (x, y\n', 1, "comma or the closing bracket"),
    ('a "--a " c ()\n', 1, "expected values"),
    ('a "--a " c (x) x\n', 1, "expected | and a condition"),
    ('a "--a " c (x, y)\nb "" c (z) | is.na(a)\n', 2, "is.na(...)"),
    ('a "--a " c (x, y)\nb "" c (z) | a\n', 2, "neither true nor false"),
    ('a "--a " c (x, y)\nb "" c (z) | a < "y"\n', 2, "has no order here"),
    ('a "--a " o (x, y)\nb "" c (z) | as.numeric(a) > 3\n', 2, "values are not numbers"),
    ('a "--a " c (x, y)\nb "" c (z) | a == "q"\n', 2, "expected one of its own"),
    ('a "--a " c (x, y)\nb "" c (z) | d == "q"\n', 2, "no parameter of this file"),
    ('a "--a " c (x, y)\nb "" c (z) | (a == "x"\n', 2, "expected ')'"),
    ('a "--a " c (x, y)\nb "" c (z) | a == "x" ^ 2\n', 2, "found '^ 2'"),
    ('a "--a " c (x, y)\nb "" c (z) | (a == "x") == TRUE\n', 2, "cannot be compared"),
    ('a "--a " i (1, 5)\n[forbidden]\na > 0 & system("x")\n', 3, "system(...)"),
    ('a "--a " i (1, 5)\n[other]\n', 2, "[forbidden] or [global]"),
    ('a "--a " i (1, 5)\n[global]\ndigits = 99\n', 3, "from 1 to 15"),
    ('a "--a " i (1, 5)\n[global]\nwhat\n', 3, "expected a setting"),
]


@pytest.mark.parametrize(("text", "line", "about"), PCS)
def test_pcs_lines_that_cannot_be_read_are_named(text: str, line: int, about: str) -> None:
    """The file, the line, what was found, what was expected."""
    with pytest.raises(ScenarioError) as caught:
        read_pcs(text, "x.pcs")
    assert str(caught.value).startswith(f"x.pcs, line {line}: ")
    assert about in str(caught.value)


@pytest.mark.parametrize(("text", "line", "about"), IRACE)
def test_irace_lines_that_cannot_be_read_are_named(text: str, line: int, about: str) -> None:
    """Also R that is out of reach: by name, never evaluated."""
    with pytest.raises(ScenarioError) as caught:
        read_irace(text, "p.txt")
    assert str(caught.value).startswith(f"p.txt, line {line}: ")
    assert about in str(caught.value)


# ---------------------------------------------------------------- fuzzing

NAMES = st.sampled_from(["a", "b", "c", "@1:x", "a-b", "x<y"])
SCRAPS = st.sampled_from(
    [
        *" \t\n{}[]()|,=!<>&+-*/%#\"'.:;0123456789abx\\\r\x0c\x00é",
        *("&&", "||", "==", "!=", "<=", ">=", "in", " in {", "} ", "categorical", "ordinal", "integer", "real", "log"),
        *(
            "Conditionals:",
            "Forbidden:",
            "1e-7",
            "-3",
            "[0, 1] [0.5]",
            "{a, b} [a]",
            "min(",
            "TRUE",
            "%in%",
            "%%",
            "c(",
        ),
        *(
            "as.numeric(",
            "[forbidden]\n",
            "[global]\n",
            "digits = 4",
            'a "" i (1, 9)\n',
            '"--a "',
            " i (1, 9) ",
            "i,log",
        ),
        *("a integer [0, 9] [1]\n", "b {x, y} [x]\n", "c | ", "b | a > 3\n", "{a=1, b=x}\n", "é", "\ud800"),
    ]
)
SOUP = st.lists(st.one_of(SCRAPS, NAMES), max_size=40).map("".join)


def either_loads_or_names_a_line(read: object, text: str) -> None:
    """The promise of every reader of lines."""
    try:
        space = read(text, "f")  # type: ignore[operator]  # one of two functions
    except ScenarioError as refusal:
        assert re.match(r"f, line \d+: ", str(refusal)), str(refusal)  # noqa: PT017 (either outcome is right)
    else:
        space.check(space.default)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(SOUP)
@example("a integer [0, 9] [1]\n{a / 0 > 3}")
@example("a {x} [x]\n" * 3 + "b | " + "!" * 200 + "(a == x)")
def test_any_text_is_a_pcs_file_or_is_refused_with_a_line(text: str) -> None:
    """Never another exception, whatever stands in the file."""
    either_loads_or_names_a_line(read_pcs, text)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(SOUP)
@example('a "" i (1, 9)\n[forbidden]\n' + "(" * 500)
@example('a "" i (1, 9)\n[forbidden]\n' + "-" * 500 + "a > 3")
def test_any_text_is_an_irace_file_or_is_refused_with_a_line(text: str) -> None:
    """Never another exception, whatever stands in the file."""
    either_loads_or_names_a_line(read_irace, text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_files_damaged_in_one_place_load_or_are_refused_with_a_line(data: st.DataObject) -> None:
    """Take a good file, delete or insert a scrap anywhere."""
    folder = Path(__file__).parents[1] / "spaces"
    path = data.draw(st.sampled_from(sorted(folder.glob("*.[pt][cx][st]"))))
    text = path.read_bytes().decode("utf-8-sig")
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 6))
    damaged = text[:start] + data.draw(SCRAPS) + text[start + length :]
    either_loads_or_names_a_line(read_irace if path.suffix == ".txt" else read_pcs, damaged)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=4), SCRAPS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "low", "high", "default", "log", "choices", "weights", "prior", "pass", "digits", "value"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=8,
)
TABLES = st.fixed_dictionaries(
    {"type": st.sampled_from(["float", "int", "categorical", "ordinal", "bool", "constant", "x"])},
    optional={
        key: st.one_of(VALUES, st.integers(1, 9), st.lists(st.sampled_from(["a", "b", 1, True]), max_size=3))
        for key in ("low", "high", "default", "choices", "weights", "log", "value", "digits", "pass", "prior")
    },
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.dictionaries(
        st.sampled_from(["x", "y", "file", "conditions", "forbidden", "favourites", "arguments", "true", "words", "z"]),
        st.one_of(TABLES, VALUES),
        max_size=5,
    )
)
def test_any_section_is_a_space_or_is_refused_by_name(section: dict[str, object]) -> None:
    """Whatever TOML can hold; the message says where."""
    try:
        space = read_section(section, "s.toml, [space]")
    except CaptimeError as refusal:
        assert str(refusal).startswith("s.toml, [space]"), str(refusal)  # noqa: PT017 (either outcome is right)
    else:
        space.sample(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "content", "about"),
    [
        ("a.pcs", b"a {x} [x]\nb {\xff} [x]\n", "line 2: found the byte 0xff"),
        ("a.json", b'{\n"hyperparameters": [}', "line 2: this is no JSON"),
        ("a.json", b"[]", "no list called hyperparameters"),
        ("a.json", b'{"hyperparameters": [{"type": "uniform_int", "name": "n", "lower": 1}]}', "hyperparameters[0]"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.yaml", b"a: &x [[1]]\nb: *x\n", "line 2: found an alias"),
        ("a.yaml", b"a: &x [1, *x]\n", "line 1: found an alias"),
        ("a.yaml", b"a: !!python/object:os.system {}\n", "line 1: this is no plain YAML"),
        ("a.yaml", b"a: [\n", "line 2: this is no plain YAML"),
        ("a.toml", b"[space\n", "this is no TOML"),
        ("a.toml", b"x = 1\n", "no [space] section"),
        ("a.toml", b'[space]\nfile = "missing.pcs"\n', "missing.pcs: cannot be read"),
        ("a.toml", b'[space]\nfile = "a.toml"\n', "is a TOML file"),
    ],
)
def test_other_files_that_cannot_be_read_are_named(name: str, content: bytes, about: str, tmp_path: Path) -> None:
    """By line where the format has lines, by place where it has names."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=re.escape(about)):
        read_space(path)
