#!/usr/bin/env bash
# What a newcomer does: `make demo` in a fresh clone. It works, and takes less room than README says.
set -euo pipefail
cd "$(dirname "$0")/.."
most=150 # MB

work=$(mktemp -d -t zarrfs-newcomer.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
git clone --quiet . "$work/zarrfs"
make --no-print-directory -C "$work/zarrfs" demo >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
tail -1 "$work/log"
taken=$(du -sm "$work/zarrfs/.venv" | cut -f1)
if [ "$taken" -ge "$most" ]; then
    echo "make demo takes $taken MB, and README promises less than $most MB:" >&2
    du -sm "$work"/zarrfs/.venv/lib/python*/site-packages/* | sort -rn | head >&2
    exit 1
fi
echo "OK: make demo in a fresh clone takes $taken MB."
