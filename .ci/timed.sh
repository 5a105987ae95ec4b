#!/usr/bin/env bash
# Runs all tests with the command that is given; says before how long that takes on this machine.
set -uo pipefail
cd "$(dirname "$0")/.."
kept=.venv/.test-minutes
if [ -s "$kept" ]; then
    echo "The tests took $(cat "$kept") minutes here the last time"
else
    echo "The tests take 10 to 20 minutes on two processors"
fi
begun=$SECONDS
printf '%s ' "$@"
echo
"$@"
status=$?
# Some of them, or a run that broke off, say nothing of the whole.
if [ -z "${ARGS:-}" ] && [ "$status" -le 1 ]; then
    echo $(((SECONDS - begun + 59) / 60)) >"$kept"
fi
exit "$status"
