import os
import signal

import pytest

from captime.cli import interrupts
from captime.cli.interrupts import asking_to_stop


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
        monkeypatch.setattr(interrupts, "_SAME_WISH_SECONDS", -1.0)
    with asking_to_stop():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), again)
