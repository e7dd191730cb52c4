"""What files in the wild have: odd values, odd bytes, odd sizes, and expressions about texts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import ScenarioError
from captime.spaces import Space, as_configspace, read_space, section_of, write_space
from captime.spaces.formats import read_space_section
from captime.spaces.formats.section import read_section

HERE = Path()
CHOICE = {"type": "categorical"}


def read(tmp_path: Path, name: str, content: str | bytes) -> Space:
    """The space of a file with this content."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_space(path)


def again(space: Space) -> Space:
    """The space that a ledger's reader makes of what is on record."""
    return read_space_section(section_of(space), "again", HERE)


def draws(space: Space, count: int = 60) -> list[dict[str, Any]]:
    """Some random configurations."""
    return [dict(space.draw(3, number)) for number in range(count)]


# ---------------------------------------------------------------- values that look like something else


@pytest.mark.parametrize(
    ("values", "value"),
    [(["off", "--q0"], "--q0"), (["q0-1", "q0-2"], "q0-1"), (["q0*2", "x"], "q0*2"), (["a\tb", "c\\d", 'e"f'], "a\tb")],
)
def test_values_that_look_like_arithmetic_read_back(values: list[str], value: str, tmp_path: Path) -> None:
    """A value is a value where one is expected, even if it could be read as arithmetic over another parameter."""
    condition = f"q0 | mode == {json.dumps(value) if chr(9) not in value else chr(34) + value + chr(34)}"
    section = {
        "mode": {**CHOICE, "choices": values},
        "q0": {"type": "int", "low": 1, "high": 3},
        "conditions": [condition],
    }
    space = read_section(section, "test")
    assert draws(again(space)) == draws(space)
    assert {("q0" in each) for each in draws(space)} == {True, False}
    assert all(("q0" in each) == (each["mode"] == value) for each in draws(space))
    if "\t" not in value:
        assert draws(read(tmp_path, "a.pcs", write_space(space, "pcs"))) == draws(space)


def test_arithmetic_without_blanks_is_still_arithmetic() -> None:
    """Where a number is expected: on the left, and on the right of a number."""
    numbers = {name: {"type": "int", "low": 1, "high": 9, "default": 1} for name in "ab"}
    space = read_section({**numbers, "forbidden": ["a+b>10", "a == b-1"]}, "test")
    assert all(each["a"] + each["b"] <= 10 and each["a"] != each["b"] - 1 for each in draws(space, 300))
    assert draws(again(space)) == draws(space)


def test_values_without_a_place_in_a_file_are_refused() -> None:
    """Not a number is not equal to itself, and half a character cannot be printed."""
    with pytest.raises(ScenarioError, match="finite number"):
        read_section({"x": {**CHOICE, "choices": [1.0, float("nan")]}}, "test")
    with pytest.raises(ScenarioError, match="whole characters"):
        read_section({"x": {**CHOICE, "choices": ["a", "b\ud800"]}}, "test")


# ---------------------------------------------------------------- two parameters of texts


@pytest.mark.parametrize(("sign", "same"), [("==", False), ("!=", True)])
def test_texts_of_two_parameters_can_be_compared(sign: str, same: bool, tmp_path: Path) -> None:
    """Forbidden if both are active and equal, or not equal; an inactive one forbids nothing."""
    section = {
        "one": {**CHOICE, "choices": ["a", "b", "c"], "default": "a"},
        "other": {"type": "ordinal", "choices": ["b", "c", "d"], "default": "b"},
        "on": {"type": "bool", "default": False},
        "conditions": ["other | on == true"],
        "forbidden": [f"one {sign} other"],
    }
    space = read_section(section, "test")
    found = draws(space, 300)
    both = [each for each in found if each["on"]]
    assert both
    assert all((each["one"] == each["other"]) is same for each in both)
    assert {each["one"] for each in found if not each["on"]} == {"a", "b", "c"}
    assert draws(again(space)) == draws(space)
    assert draws(read(tmp_path, "a.json", write_space(space, "json"))) == draws(space)


def test_texts_of_two_parameters_have_no_order() -> None:
    """And texts that have nothing in common are never equal."""
    one, other = ({**CHOICE, "choices": list(letters)} for letters in ("ab", "cd"))
    with pytest.raises(ScenarioError, match="expected == or !="):
        read_section({"one": one, "other": other, "forbidden": ["one < other"]}, "test")
    assert len(read_section({"one": one, "other": other, "forbidden": ["one == other"]}, "test").all() or []) == 4


def test_relations_of_texts_in_configspace_files(tmp_path: Path) -> None:
    """ConfigSpace can forbid that two parameters are set to the same text."""
    document = {
        "hyperparameters": [
            {"name": name, "type": "categorical", "choices": ["x", "y"], "default_value": value}
            for name, value in (("a", "x"), ("b", "y"))
        ],
        "forbiddens": [{"type": "RELATION", "left": "a", "right": "b", "lambda": "EQ"}],
        "conditions": None,
    }
    assert read(tmp_path, "a.json", json.dumps(document)).size == 2


def test_is_not_means_the_same_to_configspace() -> None:
    """It takes NEQ for true where the parent is inactive; what is written does not depend on that."""
    section = {
        "on": {"type": "bool", "default": True},
        "word": {**CHOICE, "choices": ["p", "q", "r"]},
        "number": {"type": "int", "low": 1, "high": 3},
        "first": {"type": "int", "low": 1, "high": 9},
        "second": {"type": "int", "low": 1, "high": 9},
        "conditions": ["word | on == true", "number | on == true", "first | word != p", "second | number != 2"],
    }
    space = read_section(section, "test")
    other = as_configspace(space)
    other.seed(1)
    for drawn in other.sample_configuration(100):
        space.check({name: getattr(value, "item", lambda value=value: value)() for name, value in dict(drawn).items()})


# ---------------------------------------------------------------- odd bytes, and files of others


def test_comments_may_be_in_any_encoding(tmp_path: Path) -> None:
    """Values may not: their line is named."""
    assert read(tmp_path, "a.pcs", b"# Chv\xe1tal\nx {a, b} [a] # \xe9\n").names == ("x",)
    assert read(tmp_path, "a.txt", b'# Chv\xe1tal\nx "-x " c (a, b)\n').names == ("x",)
    with pytest.raises(ScenarioError, match=r"a\.pcs, line 3: found the byte 0xe9"):
        read(tmp_path, "a.pcs", b"# Chv\xe1tal\nx {a, b} [a]\ny {\xe9, b} [b]\n")


def test_lists_that_conditions_share_in_yaml(tmp_path: Path) -> None:
    """ConfigSpace writes an alias for the second one."""
    text = """
hyperparameters:
- {name: a, type: categorical, choices: [p, q, r], default_value: p, meta: &none {x: 1}}
- {name: b, type: uniform_int, lower: 1, upper: 3, default_value: 1, meta: *none}
- {name: c, type: uniform_int, lower: 1, upper: 3, default_value: 1}
conditions:
- {type: IN, child: b, parent: a, values: &shared [p, q]}
- {type: IN, child: c, parent: a, values: *shared}
"""
    space = read(tmp_path, "a.yaml", text)
    assert all(("b" in each) == ("c" in each) == (each["a"] != "r") for each in draws(space))


def test_an_irace_file_with_another_name(tmp_path: Path) -> None:
    """The reader of PCS files says whose line it looks like."""
    with pytest.raises(ScenarioError, match=r"line 1: .* --from irace"):
        read(tmp_path, "a.pcs", 'algorithm "--" c (as, mmas)\n')


def test_blank_values_of_irace_are_no_words(tmp_path: Path) -> None:
    """The shell of irace's target runner would drop them, too."""
    space = read(tmp_path, "a.txt", 'onq0 "" c (" ", "--q0")\n')
    assert space.arguments({"onq0": " "}) == []
    assert space.arguments({"onq0": "--q0"}) == ["--q0"]


def test_truth_beside_texts_in_r(tmp_path: Path) -> None:
    """R takes TRUE beside a text for the text "TRUE"; brackets around one value are none."""
    text = """
a "" c (TRUE, FALSE)
b "" c (x, y) | a == TRUE
c "" i (1, 9) | a %in% c(FALSE)
d "" i (1, 9) | b %in% ("x")
"""
    for each in draws(read(tmp_path, "a.txt", text)):
        assert ("b" in each) == (each["a"] == "TRUE") != ("c" in each)
        assert ("d" in each) == (each.get("b") == "x")


def test_decoration_and_quotation_marks_in_pcs(tmp_path: Path) -> None:
    """Headings may say more than one word, defaults may be quoted as values are; a torn quotation mark is an error."""
    text = 'a {"x", "y"} ["x"]\n==== Conditionals: ====\nb {1, 2} [1]\nb | a in {x}\nForbidden: none\n'
    space = read(tmp_path, "a.pcs", text)
    assert space.default == {"a": "x", "b": "1"}
    with pytest.raises(ScenarioError, match=r"line 1: .*quotation mark is not closed"):
        read(tmp_path, "b.pcs", 'a {"x,z", y} [y]\n')


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.json",
            f'{{"hyperparameters": [{{"name": "x", "type": "uniform_int", "lower": 1, "upper": {"9" * 400}}}]}}',
        ),
        ("a.json", f'{{"hyperparameters": [{"9" * 5000}]}}'),
        ("a.toml", f'[space]\nx = {{ type = "int", low = 1, high = {"9" * 400} }}\n'),
        ("a.toml", f"[space]\nx = {'[' * 3000}\n"),
        ("a.toml", '[space]\nfile = "a\\u0000b.pcs"\n'),
        ("a.txt", 'x "" r (-1e308, 1e308)\n[global]\ndigits = 3\n'),
    ],
)
def test_what_cannot_be_computed_with_is_refused_or_read(name: str, content: str, tmp_path: Path) -> None:
    """In words, whatever it is."""
    try:
        space = read(tmp_path, name, content)
    except ScenarioError:
        return
    assert space.size is None


def test_a_forbidden_default_is_told_with_its_file(tmp_path: Path) -> None:
    """In every format; where defaults are assumed, a draw stands in."""
    number = {"name": "x", "type": "uniform_float", "lower": 0, "upper": 1, "default_value": 0.5}
    document = {"hyperparameters": [number], "forbiddens": [{"type": "EQUALS", "name": "x", "value": 0.5}]}
    with pytest.raises(ScenarioError, match=r"a\.json: the default configuration is forbidden"):
        read(tmp_path, "a.json", json.dumps(document))
    toml = '[space]\nx = { type = "int", low = 1, high = 3, default = 2 }\nforbidden = ["x == 2"]\n'
    with pytest.raises(ScenarioError, match=r"a\.toml, \[space\]: the default configuration is forbidden"):
        read(tmp_path, "a.toml", toml)
    pcs = "x integer [1, 3] [2]\ny integer [1, 3] [1]\n{y == 3}\n{x == 2}\n{x == 2 && y == 1}\n"
    with pytest.raises(ScenarioError, match=r"a\.pcs, line 4: the default configuration is forbidden"):
        read(tmp_path, "a.pcs", pcs)


# ---------------------------------------------------------------- odd sizes and odd laws


def test_many_parameters_with_one_value_each_can_be_counted(tmp_path: Path) -> None:
    """People freeze parameters this way; NumPy's grids have 32 axes at most."""
    text = "".join(f"p{number} {{x}} [x]\n" for number in range(40))
    assert read(tmp_path, "a.pcs", text + "q {a, b} [a]\n").size == 2


@pytest.mark.parametrize(("low", "high", "count"), [(0.05, 0.95, 11), (0.0, 1.0, 11), (0.5, 0.5, 1), (0.31, 0.39, 3)])
def test_rounded_floats_are_counted_as_they_are_drawn(low: float, high: float, count: int) -> None:
    """Ends that are no round numbers are values of their own; nothing else is drawn than what is listed."""
    space = read_section({"x": {"type": "float", "low": low, "high": high, "digits": 1}}, "test")
    listed = [each["x"] for each in space.all() or []]
    assert space.size == len(listed)
    assert len(listed) <= space.parameters[0].size  # type: ignore[operator]  # it has one
    assert {each["x"] for each in draws(space, 200)} <= set(listed)
    assert count - 1 <= len(listed) <= count


@pytest.mark.parametrize("kind", ["float", "int"])
def test_a_bell_outside_of_its_range_leans_to_the_nearer_end(kind: str) -> None:
    """However far away it is; and a range of one value has that value."""

    def values(low: int, high: int, mean: float) -> list[float]:
        prior = {"prior": "normal", "mean": mean, "sd": 1.5}
        space = read_section({"x": {"type": kind, "low": low, "high": high, **prior}}, "test")
        return [float(each["x"]) for each in draws(space)]

    for far in (10, 20, 1000):
        assert max(values(0, 100, -far)) < 3
        assert min(values(0, 100, 100 + far)) > 97
    assert values(4, 4, 1.0) == [4.0] * 60


def test_a_bell_just_outside_has_the_right_shape() -> None:
    """Nearly exponential: with the mean ten deviations below the range, a tenth of a deviation is what remains."""
    section = {"x": {"type": "float", "low": 2.0, "high": 10.0, "prior": "normal", "mean": 1.0, "sd": 0.1}}
    space = read_section(section, "test")
    found = space.drawn(np.random.default_rng(1), 20_000)[:, 0] - 2.0
    assert found.mean() == pytest.approx(0.0098, rel=0.05)  # Mills' ratio: 0.1 · (10.098 - 10)
    assert np.quantile(found, 0.5) == pytest.approx(0.0069, rel=0.05)
