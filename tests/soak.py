"""How long the tests with random input go on: a while, or with `make soak` as long as you like."""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("ZARRFS_SOAK", "1"))
"""How many times as long as in every run of the tests, which have the same input each time."""

EXHAUSTIVE = TIMES > 1 or bool(os.environ.get("ZARRFS_EXHAUSTIVE"))
"""Whether the crash sweeps hit each operation (`make sweep`, `make soak`), or some of them."""

settings.register_profile(
    "zarrfs",
    max_examples=50 * TIMES,
    derandomize=TIMES == 1,
    print_blob=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def examples(count: int) -> settings:
    """So many, and with `make soak` more. For tests of which 50 are too many or too few."""
    return settings(settings.get_profile("zarrfs"), max_examples=count * TIMES)
