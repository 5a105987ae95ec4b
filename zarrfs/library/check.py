"""``zarrfs.check``."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from zarrfs.library.checking.check import CheckConfig, check_source
from zarrfs.library.checking.findings import Finding, Totals
from zarrfs.library.engine import EngineConfig
from zarrfs.library.source import SourceOptions

_DEFAULTS = SourceOptions()
_MOST = 10_000


class CheckResult(NamedTuple):
    """
    totals : how much was looked at, and how many problems there are.
    findings : the first ten thousand problems and notes.
    """

    totals: Totals
    findings: list[Finding]


def check(
    source: str | os.PathLike[str],
    *,
    path: str = "",
    client: Any = None,
    options: SourceOptions = _DEFAULTS,
) -> CheckResult:
    """Read all metadata and decode all chunks of a source, as ``zarrfs check`` does. Blocks.

    client : a client of Dask, or any ``concurrent.futures.Executor`` whose workers find the source;
        None: this process. ``options.memory`` is then for each task.

    Raises NodeNotFound, WorkersLost, and other `zarrfs.errors.ZarrfsError`.
    """
    findings: list[Finding] = []

    def found(finding: Finding) -> None:
        if len(findings) < _MOST:
            findings.append(finding)

    config = CheckConfig(path=path, source=options, engine=EngineConfig(client=client), found=found)
    return CheckResult(check_source(os.fspath(source), config), findings)


__all__ = ["CheckResult", "check"]
