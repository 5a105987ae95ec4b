"""``python -m tests.fuzz``: see `tests.fuzz`."""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.fuzz.run import TARGETS, Failure, rounds, run_apart, run_here


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--time", type=float, default=60, help="seconds")
    parser.add_argument("--target", choices=sorted(TARGETS), help="only this one")
    parser.add_argument("--seed", type=int, help="the same cases as another time")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="so many, however long they take")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    first = arguments.first
    if arguments.here is not None:
        run_here(arguments.target, seed, range(first, first + arguments.cases), arguments.here)
    ran: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    failures: list[Failure] = []
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        next_case = dict.fromkeys(TARGETS, first)
        wanted = [arguments.target] if arguments.target else list(TARGETS)
        for name in rounds(arguments.time, wanted) if arguments.cases is None else wanted:
            count = arguments.cases or TARGETS[name].at_once
            numbers = range(next_case[name], next_case[name] + count)
            done, outcomes, found = run_apart(name, seed, numbers, Path(place, name))
            # Behind a case that crashed.
            next_case[name] += done + any(
                failure.number >= numbers.start + done for failure in found
            )
            ran[name] += done
            refused[name] += sum(n for what, n in outcomes.items() if what != "served")
            for failure in found:
                print(f"\n{failure}".encode(errors="replace").decode(), flush=True)
            failures += found
    for name, count in sorted(ran.items()):
        print(f"{name:10} {count:>10} cases, {refused[name]} of them refused")
    print(json.dumps({"seed": seed, "cases": ran, "refused": refused, "failures": len(failures)}))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
