"""Functions to be configured whose runtimes follow a law that is known."""

import random
import time

FAST, SLOW = 0.002, 0.2
"""CPU seconds of a lucky and of an unlucky run."""
CHANCES = {"a": 0.9, "b": 0.7, "c": 0.55, "d": 0.4}
"""How likely each configuration is to be lucky."""


def burn(settings: dict[str, float], instance: int, seed: int) -> bool:
    """Burn CPU time: little if lucky, much if not; the seed decides, with its own luck for every configuration."""
    lucky = random.Random(f"{seed} {settings['chance']}").random() < settings["chance"]  # noqa: S311 (a law, not a secret)
    until = time.process_time() + (FAST if lucky else SLOW)
    while time.process_time() < until:
        pass
    return instance >= 0
