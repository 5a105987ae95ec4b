#!/usr/bin/env bash
# Quick tests with every Python that zarrfs supports, and with the newest versions of everything it
# needs: `versions.sh`, or `versions.sh 3.12 newest`. Says at the end what was tested and what could
# not be.
set -uo pipefail
cd "$(dirname "$0")/.."

# A test of real mounts each for reading, writing, worker processes and the way a mount ends.
tests=(tests/unit tests/fs tests/store tests/mount/test_reading.py tests/mount/test_writing.py
    tests/mount/test_workers.py tests/mount/test_lifecycle.py tests/mount/test_request_wait.py)
supported=$(grep -oP '^    "Programming Language :: Python :: \K3\.\d+' pyproject.toml)
tested=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
results=() status=0

say() {
    results+=("$*")
    echo "== $*"
}

# The interpreter of a version such as 3.12: on the PATH, or where pyenv and uv put theirs.
find_python() {
    local candidate
    for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python3 \
        "$HOME"/.local/share/uv/python/cpython-"$1".*/bin/python3; do
        if [ "$("$candidate" -c 'import ensurepip, sys; print("%d.%d" % sys.version_info[:2])' \
            2>/dev/null)" = "$1" ]; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# A fresh environment below .venv, unless it is there with the same lock.
make_environment() {
    local bin=$1/bin python=$2
    "$python" -m venv --clear "$1"
    pip=("$bin/pip" --quiet --disable-pip-version-check --no-input install --no-compile)
}

locked() {
    "${pip[@]}" --require-hashes -r .ci/build.lock &&
        "${pip[@]}" --require-hashes --no-build-isolation -r .ci/requirements.lock
}

echo todo
