#!/usr/bin/env bash
# The environment in .venv, from nothing: system packages, the locked Python packages, zarrfs itself
# editable. `setup.sh demo` installs what the demo needs, `setup.sh` what tests, lint and benchmarks
# need too. PYTHON names the interpreter to use, PACKAGES more system packages.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

read -ra packages <<<"fuse3 gcc libc6-dev libfuse3-dev pkg-config ${PACKAGES:-}"
if python=$(find_python); then
    # Debian splits these off; other builds of Python have them.
    version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    [ -e "$header" ] || packages+=("$version-dev")
    "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=("$version-venv")
elif [ -z "${PYTHON:-}" ]; then
    # The distribution's own may be too old, as Ubuntu 22.04's is.
    name=python3
    command -v python3 >/dev/null && name=python3.11
    packages+=("$name" "$name-dev" "$name-venv")
fi
.ci/packages.sh "${packages[@]}"
python=$(find_python) || {
    echo "zarrfs needs Python 3.11 or later, and ${PYTHON:-python3} is not; name one: make PYTHON=/path/to/python3" >&2
    exit 1
}

if ! new_enough .venv/bin/python; then
    echo "Creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
# After `setup.sh demo` it is gone.
.venv/bin/python -c 'import pip' 2>/dev/null || .venv/bin/python -m ensurepip --default-pip >/dev/null
pip=(.venv/bin/pip --quiet --disable-pip-version-check --no-input install)
if [ "$what" = demo ]; then
    lock=demo
    echo "Installing what the demo needs (pyfuse3 is compiled, which takes half a minute)"
else
    lock=requirements
    echo "Installing what tests and benchmarks need (pyfuse3 is compiled; some minutes in all)"
fi
if [ "$what" = demo ]; then
    # What is never imported need not be compiled: that takes a third of the room and of the time.
    pip+=(--no-compile)
fi
"${pip[@]}" --require-hashes -r .ci/build.lock
"${pip[@]}" --require-hashes --no-build-isolation -r ".ci/$lock.lock"
"${pip[@]}" --no-deps --no-build-isolation --editable .
touch .venv/.ready-demo
if [ "$what" = demo ] && [ -e .venv/.ready ]; then
    exit # the rest is there already
elif [ "$what" = demo ]; then
    # The demo needs neither pip nor what only builds, which take 60 MB; `setup.sh` brings them again.
    names() { grep -oE '^[A-Za-z0-9._-]+==' "$1" | tr -d = | sort; }
    comm -23 <(names .ci/build.lock) <(names .ci/demo.lock) |
        xargs .venv/bin/pip --quiet --disable-pip-version-check uninstall --yes pip
    exit
fi
# A directory for what cannot stand beside the rest. It takes a while, so only where it changed.
if ! cmp -s .ci/zarr2.lock .venv/zarr2/.lock; then
    rm -rf .venv/zarr2
    "${pip[@]}" --require-hashes --no-deps --no-build-isolation -r .ci/zarr2.lock \
        --target .venv/zarr2
    mkdir -p .venv/zarr2
    cp .ci/zarr2.lock .venv/zarr2/.lock
fi
touch .venv/.ready
