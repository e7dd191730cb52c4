import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import InvariantViolated, ScenarioError
from captime.plans import RandomCaptimes, Schedule
from captime.streams import FiniteStream, GeneratedStream, Instance
from captime.streams.files import (
    from_csv,
    from_list,
    from_patterns,
    from_values,
    look_at,
    read_answers,
    with_answers,
)
from captime.utilities import parse_utility

TWENTY = [Instance(str(number), value=number, digest=str(number)) for number in range(20)]


def names(stream: FiniteStream | GeneratedStream, count: int) -> list[str]:
    """The first few instances."""
    return [stream.at(position).instance.name for position in range(count)]


def test_shuffled_streams_meet_each_instance_once_in_an_order_of_the_seed() -> None:
    """Another seed is another order; asking in another order changes nothing."""
    stream = FiniteStream(TWENTY, "shuffle", 7)
    order = names(stream, 20)
    assert sorted(order, key=int) == [str(number) for number in range(20)] != order
    again = FiniteStream(TWENTY, "shuffle", 7)
    assert [again.at(position).instance.name for position in reversed(range(20))] == order[::-1]
    assert names(FiniteStream(TWENTY, "shuffle", 8), 20) != order
    assert (stream.length, stream.population, stream.n_instances) == (20, "stream", 20)


def test_nobody_goes_round_again() -> None:
    """A second pass would count the same instances twice."""
    with pytest.raises(InvariantViolated, match="position 20"):
        FiniteStream(TWENTY).at(20)


def test_given_order_is_kept() -> None:
    """For lists that are in random order already."""
    assert names(FiniteStream(TWENTY, "given"), 20) == [each.name for each in TWENTY]


def test_draws_with_replacement_are_endless_fair_and_fixed() -> None:
    """Every instance about as often as the others, and position 10,000 does not depend on who looked before."""
    stream = FiniteStream(TWENTY, "replace", 1)
    drawn = Counter(names(stream, 10_000))
    assert len(drawn) == 20
    assert 400 < min(drawn.values()) <= max(drawn.values()) < 600
    assert FiniteStream(TWENTY, "replace", 1).at(9_999) == stream.at(9_999)
    assert (stream.length, stream.population) == (None, "finite")


def test_of_a_group_one_member_counts() -> None:
    """Variations of one instance are no independent samples."""
    groups = [str(number // 4) for number in range(20)]
    shuffled = names(FiniteStream(TWENTY, "shuffle", 1, groups=groups), 5)
    assert sorted(int(name) // 4 for name in shuffled) == [0, 1, 2, 3, 4]
    assert FiniteStream(TWENTY, "shuffle", 1, groups=groups).length == 5
    assert names(FiniteStream(TWENTY, "given", groups=groups), 5) == ["0", "4", "8", "12", "16"]
    lone = ["a", *["b"] * 19]
    drawn = Counter(names(FiniteStream(TWENTY, "replace", 1, groups=lone), 4000))
    assert 0.45 < drawn["0"] / 4000 < 0.55


def test_a_stream_that_grows_keeps_its_beginning() -> None:
    """What was met stays where it was; what is new follows, and a stream that has lost an instance is refused."""
    order = names(FiniteStream(TWENTY[:12], "shuffle", 3), 12)
    grown = FiniteStream(TWENTY, "shuffle", 3, known=order)
    assert names(grown, 12) == order
    assert sorted(names(grown, 20)) == sorted(each.name for each in TWENTY)
    with pytest.raises(ScenarioError, match="is gone"):
        FiniteStream(TWENTY[1:], "shuffle", 3, known=["0"])


def test_a_stream_of_groups_that_grows_meets_no_group_twice() -> None:
    """Variations of what was met are listed, but not met: they would count one sample twice. However often it grows."""
    known: list[str] = []
    members: list[tuple[str, str]] = []
    order: list[str] = []
    for added in (["a1", "a2", "b1", "b2", "c1"], [], ["d1", "a3", "d2", "e1"], ["f1", "c2", "e2"]):
        members += [(name, name[0]) for name in added]
        stream = FiniteStream(
            [Instance(name, digest=f"#{name}") for name, _ in members],
            "shuffle",
            3,
            groups=[group for _, group in members],
            known=known,
        )
        met = names(stream, stream.length or 0)
        listed: Any = stream.describe()["list"]
        assert met[: len(order)] == order
        assert sorted(name[0] for name in met) == sorted({group for _, group in members})
        assert [entry[0] for entry in listed][: len(known)] == known
        order, known = met, [entry[0] for entry in listed]
    assert len(order) == 6


def test_seeds_belong_to_positions_and_are_no_captimes() -> None:
    """From 1 to 2^31 - 1, the same for every stream with that campaign seed, and strangers to the draws of captimes."""
    stream, other = FiniteStream(TWENTY, "replace", 5), FiniteStream(TWENTY[:1], "replace", 5)
    seeds = [stream.at(position).seed for position in range(5000)]
    assert seeds == [other.at(position).seed for position in range(5000)]
    assert len(set(seeds)) > 4990
    assert 1 <= min(seeds) <= max(seeds) < 2**31
    plan = RandomCaptimes(parse_utility("uniform(60)"), 5, Schedule(1.0), Schedule(60.0))
    draws = plan.draws(np.arange(5000))
    assert abs(float(np.corrcoef(draws, np.array(seeds))[0, 1])) < 0.07


def test_streams_describe_themselves_in_json() -> None:
    """Names and digests in the order of the stream, the sampling, the seed, known answers."""
    stream = FiniteStream([Instance("a", digest="1", answer=b"SAT"), Instance("b\udcff", digest="2")], "given", 9)
    told = json.loads(json.dumps(stream.describe()))
    assert told["list"] == [["a", "1"], ["b\udcff", "2"]]
    assert (told["sampling"], told["seed"], told["answers"]) == ("given", 9, {"a": b"SAT".hex()})


def test_generated_instances_carry_the_command_that_makes_them(tmp_path: Path) -> None:
    """{k} counts, {seed} depends on the campaign's seed, {output} becomes the supervisor's temporary name."""
    stream = GeneratedStream(["gen", "-s{k}", "{seed}", "{output}"], tmp_path, 4, first=10, suffix=".cnf")
    element = stream.at(3)
    made = element.instance.preparation
    assert made is not None
    assert (element.instance.name, made.argv[:2], made.argv[3]) == ("13", ("gen", "-s13"), "{part}")
    assert not made.to_stdout
    assert element.instance.path == made.output
    assert made.output.endswith("13.cnf")
    assert int(made.argv[2]) != element.seed
    assert stream.at(3) == element
    assert stream.length is None


def test_files_of_another_generator_are_not_mistaken_for_ours(tmp_path: Path) -> None:
    """Another command, another program behind it, or another seed keeps its files elsewhere."""
    streams = [
        GeneratedStream(["gen", "{k}"], tmp_path, 1),
        GeneratedStream(["gen", "-x", "{k}"], tmp_path, 1),
        GeneratedStream(["gen", "{k}"], tmp_path, 2),
        GeneratedStream(["gen", "{k}"], tmp_path, 1, identity={"gen": "abc"}),
    ]
    assert len({stream.folder for stream in streams}) == 4
    made = streams[0].at(0).instance.preparation
    assert made is not None
    assert made.to_stdout


NASTY = ["a b", "'q'", '"dq"', "new\nline", "-dash", "$(touch x)", ";ls", "*", "ü", "\udcff\udcfe", "{k}", "tab\t"]


def test_any_name_a_file_can_have_is_an_instance(tmp_path: Path) -> None:
    """Twelve nasty names are found, hashed and kept as they are (T21)."""
    for number, name in enumerate(NASTY):
        Path(os.fsdecode(os.fsencode(str(tmp_path / name)))).write_text(str(number), encoding="utf-8")
    instances, groups = look_at(from_patterns(["*"], tmp_path, "w"), tmp_path, "w", allow_duplicates=False)
    assert sorted(each.name for each in instances) == sorted(NASTY)
    assert groups is None
    assert all(each.path is not None and Path(each.path).is_absolute() for each in instances)


def test_patterns_that_match_nothing_are_refused_with_what_there_is(tmp_path: Path) -> None:
    """The message shows a few names from the folder."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"no file matches 'in/\*\.cnf'.*'a\.txt'"):
        from_patterns(["in/*.cnf"], tmp_path, "s.toml: instances.files")
    with pytest.raises(ScenarioError, match="folder does not exist"):
        from_patterns(["nowhere/*.cnf"], tmp_path, "w")


def test_the_same_content_twice_is_an_error_with_the_exact_count(tmp_path: Path) -> None:
    """Unless it is allowed (F29)."""
    for number in range(100):
        (tmp_path / f"{number}.cnf").write_text(str(number % 97), encoding="utf-8")
    found = from_patterns(["*.cnf"], tmp_path, "w")
    with pytest.raises(ScenarioError, match="3 of 100 instances hold the same as another one"):
        look_at(found, tmp_path, "w", allow_duplicates=False)
    assert len(look_at(found, tmp_path, "w", allow_duplicates=True)[0]) == 100


def test_lists_and_tables_name_files_seen_from_themselves(tmp_path: Path) -> None:
    """With comments in lists, with answers and groups in tables."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_text(name, encoding="utf-8")
    (tmp_path / "in" / "list.txt").write_text("# ours\na\n\nb\n", encoding="utf-8")
    (tmp_path / "in" / "t.csv").write_text("instance,answer,group\na,SAT,x\nb,,x\n", encoding="utf-8")
    listed, _ = look_at(from_list(tmp_path / "in" / "list.txt", "w"), tmp_path, "w", allow_duplicates=False)
    assert [each.name for each in listed] == ["in/a", "in/b"]
    tabled, groups = look_at(from_csv(tmp_path / "in" / "t.csv", "w"), tmp_path, "w", allow_duplicates=False)
    assert [each.answer for each in tabled] == [b"SAT", None]
    assert groups == ["x", "x"]


def test_tables_that_are_none_are_refused_with_the_line(tmp_path: Path) -> None:
    """Rows of another length, missing columns, lists without entries."""
    table = tmp_path / "t.csv"
    table.write_text("instance,answer\na\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"line 2 .* has 1 cells"):
        from_csv(table, "w")
    table.write_text("x,y\na,b\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="has the columns x, y"):
        from_csv(table, "w")
    table.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="lists no instance"):
        from_list(table, "w")


def test_known_answers_find_their_instances_by_name_or_by_file(tmp_path: Path) -> None:
    """A file of answers that knows none of the instances is a mistake."""
    answers = tmp_path / "answers.csv"
    answers.write_text("instance,answer\nin/a.cnf,SAT\nb.cnf,UNSAT\n", encoding="utf-8")
    instances = [Instance("in/a.cnf"), Instance("in/b.cnf"), Instance("in/c.cnf")]
    known = with_answers(instances, read_answers(answers, "w"), "w")
    assert [each.answer for each in known] == [b"SAT", b"UNSAT", None]
    with pytest.raises(ScenarioError, match="no instance is called 'in/a"):
        with_answers([Instance("x")], read_answers(answers, "w"), "w")


def test_plain_values_are_instances_too() -> None:
    """Named by their text; equal ones are duplicates."""
    made = from_values([1, "two", {"n": 3}], "w", allow_duplicates=False)
    assert [each.name for each in made] == ["1", "two", '{"n": 3}']
    assert made[2].value == {"n": 3}
    with pytest.raises(ScenarioError, match="1 of 2 instances"):
        from_values([1, 1], "w", allow_duplicates=False)
    assert [each.name for each in from_values([1, 1], "w", allow_duplicates=True)] == ["1", "1#2"]


def test_large_objects_that_differ_only_in_the_middle_are_different_instances() -> None:
    """And keep their digests from one process to the next, as far as pickles do."""
    one, other = np.zeros(10_000), np.zeros(10_000)
    other[5_000] = 1.0
    made = from_values([one, other], "w", allow_duplicates=False)
    assert [each.name for each in made] == ["ndarray", "ndarray#2"]
    assert made[0].digest == from_values([one.copy()], "w", allow_duplicates=False)[0].digest
