"""Whether this process runs only zarrfs, which may then change settings of foreign libraries.

As a library, zarrfs must not change them for the program that imports it.
"""

from __future__ import annotations

import sys
from typing import Any

owned = False


def own_process() -> None:
    """Declare that this process, and those that it forks, run only zarrfs. Idempotent."""
    global owned  # noqa: PLW0603 - a property of the process
    owned = True
    if (blosc := sys.modules.get("numcodecs.blosc")) is not None:
        without_threads(blosc)


def without_threads(blosc: Any) -> None:
    """Decode without Blosc's thread pool: one global lock, where zarrfs decodes in parallel.

    Outside the main thread, numcodecs does not use that pool unless the user requests it.
    """
    blosc.use_threads = False
