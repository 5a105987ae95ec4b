"""Usage, from the root of the repository:

    python -m tests.mutants [--count N] [--seed S] [--jobs J] [--line L]… [--tests PATH]… [PATH…]

``PATH`` begins the names of the modules to mutate; without any, all of `MODULES`. Each module
gets its share of the sample, spread over its lines, in random order, so that the part of a run
before an interruption is a sample, too. The same seed takes the same mutations, as long as the
modules stay the same. It prints a line for each: killed and by which test, survived, unseen (no
test executes its line), or timeout (a test that hangs notices, too). A survivor is either a fault
that no test notices, or a change that changes nothing; somebody has to look.

``--control`` goes through all of this without changing anything: what is killed then tells how
often a test fails by itself.
"""

import argparse
import contextlib
import io
import os
import random
import sys
from collections import defaultdict

import pytest

from tests.mutants.mutations import Mutation, modules, mutations
from tests.mutants.session import Result, Session

# All run in one process; real mounts do not.
TESTS = (
    "tests/fs",
    "tests/model",
    "tests/unit",
    "tests/store/local_writing",
    "tests/store/test_creating.py",
    "tests/store/test_every_store.py",
    "tests/store/test_every_writable_store.py",
    "tests/store/test_leftovers.py",
    "tests/store/test_local_store.py",
    "tests/store/test_races.py",
    "tests/faults/test_journal_entries.py",
    "tests/faults/hostile/test_bad_data.py",
    "tests/library/test_copy.py",
    "tests/library/test_open_array.py",
    "tests/library/test_salvage.py",
)


_FATES = ("killed", "timeout", "survived", "unseen")


def sample(every: list[Mutation], count: int, seed: int) -> list[Mutation]:
    """So many of all mutations at equal distances in their order, shuffled."""
    if count >= len(every):
        return every
    chance = random.Random(seed)
    step = len(every) / count
    first = chance.uniform(0, step)
    chosen = [every[int(first + number * step)] for number in range(count)]
    chance.shuffle(chosen)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20, help="how many mutations")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    parser.add_argument("--line", type=int, action="append", help="only those of this line")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds of tests for one")
    parser.add_argument("--tests", action="append", help="tests to run, instead of the usual")
    parser.add_argument("--control", action="store_true", help="change nothing")
    parser.add_argument(
        "--copies", action="store_true", help="for tests that start processes: always make a copy"
    )
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    names = modules(arguments.paths)
    every = [
        mutation
        for name in names
        for mutation in mutations(name)
        if not arguments.line or mutation.line in arguments.line
    ]
    chosen = sample(every, arguments.count, arguments.seed)
    print(f"{len(chosen)} of {len(every)} mutations of {len(names)} modules", flush=True)
    if arguments.control:
        chosen = [one._replace(new=one.old) for one in chosen]
    fates: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    out = os.fdopen(os.dup(1), "w")

    def tell(result: Result) -> None:
        mutation, fate, test, seconds = result
        # Survivors are tried with more tests in the end.
        fates[mutation.module][fate] += fate != "so far"
        print(f"{fate:<9} {seconds:4.0f} s  {mutation}  [{test}]", file=out, flush=True)

    session = Session(
        modules([]),
        chosen,
        tell,
        arguments.patience,
        arguments.jobs,
        copies=arguments.copies,
    )
    options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=30"]
    os.environ["ZARRFS_SOAK"] = "1"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        pytest.main(["-n0", *options, *(arguments.tests or TESTS)], plugins=[session])
    if sum(map(len, fates.values())) == 0:
        sys.exit(said.getvalue())
    fates["all"] = {fate: sum(counts.get(fate, 0) for counts in fates.values()) for fate in _FATES}
    for module, counts in fates.items():
        told = ", ".join(f"{fate} {count}" for fate in _FATES if (count := counts.get(fate)))
        print(f"{module}: {told}", file=out, flush=True)


if __name__ == "__main__":
    main()
