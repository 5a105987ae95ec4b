"""A program for tests: its exit status is the sum of its arguments."""

import sys


def main() -> int:
    return sum(int(argument) for argument in sys.argv[1:])
