"""Which rows need an optional package: run as a program, tells it for all of them.

It has to be a program, because it hides the packages before anything imports them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_OPTIONAL_PACKAGES = ("msgpack", "pcodec", "zfpy")


def extras_needed() -> Mapping[str, Mapping[str, str]]:
    """By table and row, the extra that must be installed."""
    done = subprocess.run(
        [sys.executable, "-m", "format_support.extras"],
        cwd=Path(__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    found: Mapping[str, Mapping[str, str]] = json.loads(done.stdout)
    return found


def _without_packages() -> Mapping[str, Mapping[str, str]]:
    for package in _OPTIONAL_PACKAGES:
        sys.modules[package] = None  # type: ignore[assignment]
    from zarrfs.errors import ZarrfsError  # noqa: PLC0415

    from . import rows  # noqa: PLC0415
    from .samples import parse  # noqa: PLC0415

    def extras(table: rows.Rows) -> dict[str, str]:
        needed = {}
        for name, samples in table.items():
            try:
                parse(samples[0].version, samples[0].text)
            except ZarrfsError as error:
                extra = re.search(r"install '\.\[(\w+)\]'", str(error))
                if extra is None:
                    raise
                needed[name] = extra[1]
        return needed

    return {"codecs": extras(rows.codecs()), "filters_of_v2": extras(rows.filters_of_v2())}


if __name__ == "__main__":
    json.dump(_without_packages(), sys.stdout)
