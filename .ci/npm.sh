#!/usr/bin/env bash
# Installs a program or library for Node that tests need, under .venv: npm.sh NAME VERSION.
# Azurite stands in for Azure's blob service; zarrita reads Zarr, and jsfive and h5wasm read HDF5,
# in JavaScript. Where npm is missing, it says so, and those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 version=$2
place=.venv/$name

[ "$(cat "$place/.version" 2>/dev/null)" != "$version" ] || exit 0
if ! command -v npm >/dev/null; then
    echo "npm is not installed: the tests with $name will be skipped" >&2
    exit 0
fi
echo "Installing $name $version"
npm install --silent --no-audit --no-fund --omit=optional --prefix "$place" "$name@$version" >&2
echo "$version" >"$place/.version"
