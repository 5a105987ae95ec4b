"""A session of pytest that collects all tests once, and then forks for each mutation.

A fork puts the mutation into the functions that have been imported, and runs the tests that
execute its line, the fastest first, until one fails. What no fork can see, because it is in the
head of a function or in no function, goes into a copy of the repository.
"""

import ast
import hashlib
import importlib
import json
import os
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.copies import tests_fail
from tests.mutants.coverage import Coverage
from tests.mutants.forks import Fork
from tests.mutants.mutations import ROOT, Mutation
from tests.mutants.swap import function_around, swap

# Exit statuses of a fork.
_SURVIVED, _KILLED, _NOT_SWAPPED = 0, 10, 11
# Seconds for some tests, and how many times as long as without mutation it may take beside that.
_LEAST, _TIMES = 30, 8
# To copy the repository and collect tests takes at most so long; so do tests of unknown duration.
_COPY_SECONDS = 600
# The second time, survivors get so many times as many tests.
_MORE_PATIENCE = 3
# A test that has killed mutations of the module counts as so much faster for each.
_BOOST = 3
# Characters of the message of a test that fails.
_LONGEST_REASON = 120


class Result(NamedTuple):
    """What became of a mutation: killed, survived (first only so far), timeout or unseen (no test
    executes its line); by which test, and why; after how many seconds."""

    mutation: Mutation
    fate: str
    test: str
    seconds: float


class _Trial:
    """A mutation and its tests, the fastest first; ``done`` of them it has survived."""

    def __init__(self, mutation: Mutation, tests: list[str]) -> None:
        self.mutation = mutation
        self.tests = tests
        self.done = 0
        self.seconds = 0.0
        self.in_copy = False

    @property
    def survived(self) -> str:
        return f"{self.done} of {len(self.tests)} tests" + ", in a copy" * self.in_copy


class _Run:
    """A fork that makes some tests of a trial."""

    def __init__(
        self, trial: _Trial, chosen: list[str], items: dict, seconds: dict[str, float]
    ) -> None:
        self.trial = trial
        self.chosen = chosen
        self._last = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 - closed by `end`
        told = Path(self._last.name)

        def work() -> int:
            if trial.in_copy:
                return _KILLED if tests_fail(trial.mutation, chosen) else _SURVIVED
            tests = [items[name] for name in chosen]
            return _run_until_failure(trial.mutation, tests, told)

        usual = sum(map(seconds.__getitem__, chosen))
        self.fork = Fork(work, 2 * _LEAST + _TIMES * usual + _COPY_SECONDS * trial.in_copy)

    def end(self) -> tuple[int | None, str]:
        """The exit status, and the last test."""
        status = self.fork.end()
        with self._last as last:
            told = last.read()
        self.trial.seconds += time.monotonic() - self.fork.begun
        return status, told


class Session:
    """A plugin of pytest that takes the place of its loop over the tests.

    patience : seconds of tests, as they take without mutation, after which a mutation counts
        as survived at first. Survivors are tried with more in the end.
    jobs : how many are tried at the same time.
    copies : whether all are put into copies of the repository, with all tests of the session,
        which may start processes of their own.
    """

    def __init__(
        self,
        modules: list[str],
        mutations: list[Mutation],
        tell: Callable[[Result], None],
        patience: float,
        jobs: int,
        *,
        copies: bool,
    ) -> None:
        self._modules = modules
        self._mutations = mutations
        self._tell = tell
        self._patience = patience
        self._jobs = jobs
        self._copies = copies
        self._items: dict[str, pytest.Item] = {}
        self._seconds: dict[str, float] = {}
        self._killers: Counter[tuple[str, str]] = Counter()
        self._survivors: list[_Trial] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "some tests cannot be collected"
        self._items = {item.nodeid: item for item in session.items}
        for name in self._modules:
            # Also those that tests import later: only functions that are there can be changed.
            importlib.import_module(
                name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            )
        trials: deque[_Trial] = deque()
        if self._copies:
            self._seconds = dict.fromkeys(self._items, 0.0)
            for mutation in self._mutations:
                trials.append(_Trial(mutation, list(self._items)))
                trials[-1].in_copy = True
        else:
            found = self._coverage()
            self._seconds = found["seconds"]
            for mutation in self._mutations:
                if tests := self._tests(mutation, found):
                    trials.append(_Trial(mutation, tests))
                    trials[-1].in_copy = _outside(mutation)
                else:
                    self._tell(Result(mutation, "unseen", "", 0.0))
        try:
            self._try(trials, self._patience)
            again = deque(one for one in self._survivors if one.done < len(one.tests))
            self._survivors = [one for one in self._survivors if one not in again]
            self._try(again, self._patience * _MORE_PATIENCE)
        finally:
            for one in self._survivors:
                self._tell(Result(one.mutation, "survived", one.survived, one.seconds))
        return True

    def _coverage(self) -> dict:
        """Kept below ``build/``, as long as modules and tests are the same."""
        texts = [(ROOT / name).read_bytes() for name in self._modules]
        digest = hashlib.sha256(b"\0".join(texts))
        digest.update("\0".join(self._items).encode())
        path = ROOT / "build" / "mutants" / f"{digest.hexdigest()[:16]}.json"
        if path.exists():
            return json.loads(path.read_text())
        path.parent.mkdir(parents=True, exist_ok=True)
        items = list(self._items.values())

        def trace() -> int:
            coverage = Coverage(self._modules)
            items[0].config.pluginmanager.register(coverage)
            coverage.run(items)
            new = path.with_suffix(f".{os.getpid()}")
            found = {"lines": coverage.lines, "seconds": coverage.seconds}
            new.write_text(json.dumps({**found, "failed": coverage.failed}))
            new.rename(path)
            return 0

        assert Fork(trace, 7200).wait() == 0
        return json.loads(path.read_text())

    def _tests(self, mutation: Mutation, found: dict) -> list[str]:
        """Those that execute its line, the fastest first.

        What is in no function is executed once, by no test: then those that execute any line of
        its module.
        """
        module, line = mutation.module, mutation.line
        outside = _outside(mutation)
        tests = [
            test
            for test, lines in found["lines"].items()
            if module in lines and (outside or line in lines[module])
        ]
        good = set(tests).difference(found["failed"])
        return sorted(good, key=lambda test: (self._seconds[test], test))

    def _try(self, trials: deque[_Trial], patience: float) -> None:
        running: list[_Run] = []
        try:
            while trials or running:
                while trials and len(running) < self._jobs:
                    running.append(self._start(trials.popleft(), patience))
                time.sleep(0.02)
                for run in [run for run in running if run.fork.over]:
                    running.remove(run)
                    self._ended(run, trials)
        finally:
            for run in running:
                run.end()

    def _start(self, trial: _Trial, patience: float) -> _Run:
        module = trial.mutation.module

        def cost(test: str) -> float:
            return self._seconds[test] / (1 + _BOOST * self._killers[module, test])

        rest = sorted(trial.tests[trial.done :], key=cost)
        trial.tests[trial.done :] = rest
        chosen: list[str] = []
        total = 0.0
        for test in rest:
            if chosen and total + self._seconds[test] > patience:
                break
            total += self._seconds[test]
            chosen.append(test)
        return _Run(trial, chosen, self._items, self._seconds)

    def _ended(self, run: _Run, trials: deque[_Trial]) -> None:
        status, told = run.end()
        trial = run.trial
        mutation = trial.mutation
        if status == _NOT_SWAPPED:
            trial.in_copy = True
            trials.append(trial)
        elif status == _SURVIVED:
            trial.done += len(run.chosen)
            self._survivors.append(trial)
            self._tell(Result(mutation, "so far", trial.survived, trial.seconds))
        else:
            test = "in a copy" if trial.in_copy else told.replace("\n", ": ")
            self._killers[mutation.module, told.partition("\n")[0]] += 1
            fate = "timeout" if status is None else "killed"
            self._tell(Result(mutation, fate, test, trial.seconds))


def _outside(mutation: Mutation) -> bool:
    tree = ast.parse((ROOT / mutation.module).read_bytes())
    return function_around(mutation, tree) is None


class _Failures:
    """Ends the process at the first failure."""

    def __init__(self, told: Path) -> None:
        self._told = told

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = "" if crash is None else " ".join(crash.message.split())[:_LONGEST_REASON]
            self._told.write_text(f"{report.nodeid}\n{why}")
            os._exit(_KILLED)


def _run_until_failure(mutation: Mutation, items: list[pytest.Item], told: Path) -> int:
    if not swap(mutation):
        return _NOT_SWAPPED
    for item in items:
        # The fork is given up as a whole, however many programs run beside it.
        item.add_marker(pytest.mark.timeout(0), append=False)
    hook = items[0].config.hook
    items[0].config.pluginmanager.register(_Failures(told))
    # Session-scoped fixtures live as long as their items are in one order of files.
    for item, following in zip(items, [*items[1:], None], strict=True):
        told.write_text(item.nodeid)
        hook.pytest_runtest_protocol(item=item, nextitem=following)
    return _SURVIVED
