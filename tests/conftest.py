"""What all tests share."""

from collections.abc import Iterator

import pytest

from captime_research.baselines import register

# As if the package beside captime were installed: its methods are tested with the others.
register()


@pytest.fixture(scope="session", autouse=True)
def _seed_of_those_who_name_none() -> Iterator[None]:
    """Campaigns without a seed draw a fresh one; in tests it is 0, so that a failure can be seen again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("captime.streams.finite.fresh_seed", lambda: 0)
        yield
