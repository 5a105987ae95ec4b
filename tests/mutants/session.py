"""A session of pytest that collects all tests once, and then forks for each mutation.

A fork puts the mutation into the functions that have been imported, and runs the tests that
execute its line, the fastest first, until one fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.coverage import Coverage
from tests.mutants.mutations import ROOT, Mutation
from tests.mutants.swap import swap

# Exit statuses of a fork.
_SURVIVED, _KILLED, _NOT_SWAPPED, _BROKEN = 0, 10, 11, 12
# A wait for the loop of a file system that a mutation has made endless.
_LOOP_SECONDS = 15


class Result(NamedTuple):
    """What became of a mutation: killed, survived, timeout, unseen (no test executes its line)
    or unswapped (it is in no body of a function); by which test, and after how many seconds."""

    mutation: Mutation
    fate: str
    test: str
    seconds: float


class Session:
    """A plugin of pytest that takes the place of its loop over the tests.

    patience : seconds of tests, as they took without mutation, after which a mutation counts
        as survived.
    """

    def __init__(
        self,
        modules: list[str],
        mutations: list[Mutation],
        tell: Callable[[Result], None],
        patience: float,
    ) -> None:
        self._modules = modules
        self._mutations = mutations
        self._tell = tell
        self._patience = patience

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "some tests cannot be collected"
        items = {item.nodeid: item for item in session.items}
        found = self._coverage(list(items.values()))
        for mutation in self._mutations:
            begun = time.monotonic()
            fate, test = self._fate(mutation, items, found)
            self._tell(Result(mutation, fate, test, time.monotonic() - begun))
        return True

    def _coverage(self, items: list[pytest.Item]) -> dict:
        """Kept below ``build/``, as long as modules and tests are the same."""
        texts = [(ROOT / name).read_bytes() for name in self._modules]
        digest = hashlib.sha256(b"\0".join(texts))
        digest.update("\0".join(item.nodeid for item in items).encode())
        path = ROOT / "build" / "mutants" / f"{digest.hexdigest()[:16]}.json"
        if path.exists():
            return json.loads(path.read_text())
        path.parent.mkdir(parents=True, exist_ok=True)

        def trace() -> int:
            coverage = Coverage(self._modules)
            items[0].config.pluginmanager.register(coverage)
            coverage.run(items)
            new = path.with_suffix(f".{os.getpid()}")
            found = {"lines": coverage.lines, "seconds": coverage.seconds}
            new.write_text(json.dumps({**found, "failed": coverage.failed}))
            new.rename(path)
            return 0

        assert _forked(trace, 7200) == 0
        return json.loads(path.read_text())

    def _fate(self, mutation: Mutation, items: dict, found: dict) -> tuple[str, str]:
        seconds = found["seconds"]
        tests = sorted(
            (
                test
                for test, lines in found["lines"].items()
                if mutation.line in lines.get(mutation.module, ())
                and test in items
                and test not in found["failed"]
            ),
            key=seconds.__getitem__,
        )
        chosen, total = [], 0.0
        for test in tests:
            total += seconds[test]
            if chosen and total > self._patience:
                break
            chosen.append(items[test])
        if not chosen:
            return "unseen", ""
        with tempfile.NamedTemporaryFile("r") as last:

            def run() -> int:
                return _run_until_failure(mutation, chosen, Path(last.name))

            status = _forked(run, 60 + 6 * min(total, self._patience))
            told = last.read()
        if status is None:
            return "timeout", told
        if status == _BROKEN:
            raise RuntimeError(told)
        return {
            _SURVIVED: ("survived", f"{len(chosen)} of {len(tests)} tests"),
            _NOT_SWAPPED: ("unswapped", ""),
        }.get(status, ("killed", told))


class _Failures:
    """Ends the process at the first failure."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(_KILLED)


def _run_until_failure(mutation: Mutation, items: list[pytest.Item], told: Path) -> int:
    if not swap(mutation):
        return _NOT_SWAPPED
    for module in ("tests.fs.loop", "tests.model.loop"):
        if module in sys.modules:
            sys.modules[module]._SECONDS = _LOOP_SECONDS  # type: ignore[attr-defined]
    hook = items[0].config.hook
    items[0].config.pluginmanager.register(_Failures())
    # Session-scoped fixtures live as long as their items are in one order of files.
    for item, following in zip(items, [*items[1:], None], strict=True):
        told.write_text(item.nodeid)
        hook.pytest_runtest_protocol(item=item, nextitem=following)
    return _SURVIVED


def _forked(work: Callable[[], int], timeout: float) -> int | None:
    """The exit status of a fork that does ``work``; None if it takes too long."""
    place = tempfile.mkdtemp(prefix="zarrfs-mutant-")
    child = os.fork()
    if not child:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = place
            os._exit(work())
        except BaseException:  # noqa: BLE001 - the parent tells
            (Path(place) / "failed").write_text(traceback.format_exc())
            os._exit(_BROKEN)
    give_up = time.monotonic() + timeout
    try:
        while time.monotonic() < give_up:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                if code == _BROKEN:
                    raise RuntimeError((Path(place) / "failed").read_text())
                return code
            time.sleep(0.02)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        shutil.rmtree(place, ignore_errors=True)
