import json
import math
import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from captime.supervision.messages import Channel, FunctionCall, Launch, Preparation, Report
from supervised import launch

# Names as Python shows them: any bytes but NUL, undecodable ones escaped.
NAMES = st.binary(max_size=40).filter(lambda name: b"\0" not in name).map(os.fsdecode)
SECONDS = st.floats(min_value=0.0, allow_nan=False) | st.just(math.inf)


@given(
    argv=st.lists(NAMES, max_size=4).map(tuple),
    environment=st.dictionaries(NAMES, NAMES, max_size=3),
    captime=SECONDS,
    wall_limit=SECONDS,
    path=NAMES,
    number=st.integers(min_value=0, max_value=2**63),
    packed=st.binary(max_size=100),
)
def test_a_launch_arrives_as_it_was_sent(
    *,
    argv: tuple[str, ...],
    environment: dict[str, str],
    captime: float,
    wall_limit: float,
    path: str,
    number: int,
    packed: bytes,
) -> None:
    """Names in any encoding, exact floats, infinity, bytes; on one line of ASCII."""
    sent = launch(
        *argv,
        number=number,
        environment=environment,
        captime=captime,
        wall_limit=wall_limit,
        call=FunctionCall(packed, path, packed, (path,)),
        preparation=Preparation(argv, path, to_stdout=True, timeout=captime),
        guarded=((path, number, number, number, number),),
        verifier=argv,
        memory_limit=number,
    )
    line = sent.to_json()
    assert line.isascii()
    assert "\n" not in line
    assert Launch.from_json(line) == sent


@given(
    parts=st.lists(st.binary(max_size=200), min_size=5, max_size=5),
    numbers=st.lists(st.integers(min_value=0), min_size=4, max_size=4),
    verified=st.sampled_from([None, True, False]),
    problem=NAMES,
)
def test_a_report_arrives_as_it_was_sent(
    parts: list[bytes], numbers: list[int], verified: bool | None, problem: str
) -> None:
    """Whatever the program printed."""
    head, tail, errors, file, match = parts
    sent = Report(
        numbers[0],
        "exit",
        exit_code=None,
        signal=9,
        cpu_ns=numbers[1],
        wall_ns=numbers[2],
        runtime_ns=numbers[3],
        stdout_head=head,
        stdout_tail=tail,
        stderr_tail=errors,
        output_file=file,
        matches={"answer": match},
        returned=match,
        flags=("contended", "leftovers"),
        problem=problem,
        verified=verified,
    )
    assert Report.from_json(sent.to_json()) == sent
    assert json.loads(sent.to_json())["signal"] == 9


def test_lines_arrive_whole_however_they_were_cut() -> None:
    """A line larger than what the socket holds is sent in parts as the other side reads, and neither waits."""
    ours, theirs = map(Channel, socket.socketpair())
    large = "x" * (4 << 20)
    ours.send("run", large)
    ours.send("cancel", "7")
    assert ours.waiting
    heard: list[tuple[str, str]] = []
    while len(heard) < 2:
        heard += theirs.receive()
        ours.flush()
    assert heard == [("run", large), ("cancel", "7")]
    assert not ours.waiting
    ours.send("ready")
    ours.close()
    assert list(theirs.receive()) == [("ready", "")]
    assert theirs.closed
    theirs.send("report", "unread")
    theirs.close()
