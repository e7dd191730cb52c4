import re
from collections import Counter

import pytest

import word_list
from word_list import NOT_YET, WORDS, beyond, clean, hits_in, main, room_of, tracked_files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody waits for it.", "Nobody"),
        ("somebody else's lock", "somebody"),
        ("at most so\nmany runs", "so many"),
        ("    # The same command goes\n    # on later.", "goes on"),
        ("in an earlier life of the campaign", "earlier life of"),
        ("all sittings together", "sittings"),
    ],
)
def test_words_are_found_also_across_the_end_of_a_line(text: str, found: str) -> None:
    """The hit names the word and what to write in its place."""
    (hit,) = hits_in("docs/x.md", text)
    assert hit.word.startswith(found)
    assert hit.instead in {instead for _, instead in WORDS}
    assert str(hit).startswith("docs/x.md:1: ")


@pytest.mark.parametrize("text", ["The run is resumed.", "this many runs", "going_on.py", "half-life", "ongoing"])
def test_other_words_are_left_alone(text: str) -> None:
    """Names of files and parts of longer words are no hits."""
    assert not list(hits_in("docs/x.md", text))


def test_a_room_with_more_hits_than_allowed_is_refused() -> None:
    """All hits of that room are shown; those of a room within its allowance are not."""
    hits = [*hits_in("docs/x.md", "nobody and\nsomebody"), *hits_in("src/captime/ledger/y.py", "whoever")]
    assert {room_of(hit.file) for hit in beyond(hits, {"docs": 1, "src/captime/ledger": 1})} == {"docs"}
    assert beyond(hits, {"docs": 2, "src/captime/ledger": 1}) == []
    assert len(beyond(hits, {})) == 3


def test_the_text_of_the_project_keeps_to_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `make check` has it; with a word less allowed somewhere, it fails and says where."""
    assert main([]) == 0, capsys.readouterr().out
    counts = Counter(room_of(hit.file) for file in tracked_files() for hit in hits_in(file, _text(file)))
    rooms = [room for room in NOT_YET if counts[room]]
    assert set(clean(counts)) == set(NOT_YET) - set(rooms)
    if rooms:
        monkeypatch.setattr(word_list, "NOT_YET", {**NOT_YET, rooms[0]: counts[rooms[0]] - 1})
        capsys.readouterr()
        assert main([]) == 1
        assert re.search(rf"^{re.escape(rooms[0])}[^:]*:\d+: ", capsys.readouterr().out, re.MULTILINE)


def _text(file: str) -> str:
    return (word_list.ROOT / file).read_text("utf-8", "replace")
