"""Which tests execute which lines of the modules to mutate, and how long each test takes."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from tests.mutants.mutations import ROOT


class Coverage:
    """Traces the tests of a session, all threads of this process.

    lines : test → module → lines. seconds : test → seconds, with tracing.
    """

    def __init__(self, modules: list[str]) -> None:
        self._modules = {str(ROOT / name): name for name in modules}
        self._now: dict[str, set[int]] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def run(self, items: list[pytest.Item]) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                self._now = {}
                begun = time.monotonic()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self.seconds[item.nodeid] = round(time.monotonic() - begun, 3)
                self.lines[item.nodeid] = {
                    name: sorted(lines) for name, lines in self._now.copy().items()
                }
                # Something else may have taken the place of the tracer.
                sys.settrace(self._call)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def _call(self, frame: FrameType, event: str, _argument: Any) -> Any:
        name = self._modules.get(frame.f_code.co_filename)
        if name is None:
            return None
        lines = self._now.setdefault(name, set())
        lines.add(frame.f_lineno)

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            self._now.setdefault(name, set()).add(frame.f_lineno)
            return line

        return line
