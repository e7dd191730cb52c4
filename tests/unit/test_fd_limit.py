import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
soft, hard, slots = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from captime.errors import ScenarioError
from captime.executors.local_slots import ensure_descriptors
try:
    ensure_descriptors(slots)
except ScenarioError as reason:
    print(reason)
else:
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "slots", "words"),
    [
        (512, 1024, 2, "512"),
        (64, 1024, 100, "444"),
        (64, 256, 100, "--jobs 5"),
        (64, 64, 8, "--jobs"),
        (32, 32, 1, "raise that limit"),
    ],
)
def test_too_few_descriptors_are_told_before_anything_begins(soft: int, hard: int, slots: int, words: str) -> None:
    """C11: what is needed is computed; the soft limit is raised, the hard one is named."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(soft), str(hard), str(slots)], capture_output=True, text=True, check=True
    )
    told = done.stdout.strip()
    if words.isdigit():
        # A few files more or less are open in another Python.
        assert int(told) == pytest.approx(int(words), abs=20)
    else:
        assert words in told
        assert f"may have {hard}" in told
