import os
import selectors
import signal
import socket

import pytest

from captime.cli import shared
from captime.cli.shared import asking_to_stop
from captime.executors.protocol import signals_heard, signals_remembered


def test_a_queue_and_its_script_may_both_pass_a_signal_on() -> None:
    """The second SIGTERM of the same moment is the same wish, and must not cost the certificate."""
    with asking_to_stop() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.signal == signal.SIGTERM


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_a_second_wish_insists(monkeypatch: pytest.MonkeyPatch, again: int) -> None:
    """Ctrl-C at once, other signals after a while."""
    if again == signal.SIGTERM:
        monkeypatch.setattr(shared, "_SAME_WISH_SECONDS", -1.0)
    with asking_to_stop():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), again)


@pytest.mark.parametrize("remembered", [False, True])
def test_waiting_survives_a_closed_descriptor_for_signals(remembered: bool) -> None:
    """Another library, or an interrupt at a bad moment, may have left one; the next wait must not end in an error."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno())
    ours.close()
    theirs.close()
    try:
        if remembered:
            with signals_remembered():
                pass
        else:
            with selectors.DefaultSelector() as selector, signals_heard(selector) as bell:
                assert not bell.was_signalled()
    finally:
        left = signal.set_wakeup_fd(-1)
    assert left == -1
