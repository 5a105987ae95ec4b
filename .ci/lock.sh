#!/usr/bin/env bash
# Locks the development environment for CPython 3.11 and later on Linux: `make lock` takes the
# newest versions of everything, `.ci/lock.sh` alone keeps what is locked and still fits.
set -euo pipefail
cd "$(dirname "$0")/.."
options=("$@")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet uv

# One version of each package for every Python: what is tested on one holds on the others.
compile() {
    "$work/venv/bin/uv" pip compile --quiet "${options[@]}" --universal --python-version 3.11 \
        --fork-strategy fewest --generate-hashes --no-header "$@"
}
compile pyproject.toml --extra mount --extra http --extra s3 --extra msgpack --extra pcodec --extra zfp \
    --extra gcs --extra azure --extra icechunk --extra parquet --extra netcdf --extra grib --extra tiff \
    --group dev --group build \
    --output-file .ci/requirements.lock
compile --group tools --constraint .ci/requirements.lock --no-annotate --output-file .ci/tools.lock
# The same versions of what the demo needs: a tenth of that.
compile pyproject.toml --extra mount --group demo --constraint .ci/requirements.lock --no-annotate \
    --output-file .ci/demo.lock
compile --group build --constraint .ci/requirements.lock --output-file .ci/build.lock
# Of what it shares with the rest only numpy, which then need not be fetched twice.
grep -o '^numpy==[^ ]*' .ci/requirements.lock >"$work/numpy"
compile --group zarr2 --constraint "$work/numpy" --no-annotate --output-file .ci/zarr2.lock
