#!/usr/bin/env bash
# Installs Azurite, the stand-in for Azure's blob service, for the tests that need it. It is a
# program for Node: where npm is missing, it says so, and those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
version=3.35.0
place=.venv/azurite

[ "$(cat $place/.version 2>/dev/null)" != "$version" ] || exit 0
if ! command -v npm >/dev/null; then
    echo "npm is not installed: the tests of Azure's blob service will be skipped" >&2
    exit 0
fi
echo "Installing Azurite $version"
npm install --silent --no-audit --no-fund --omit=optional --prefix "$place" "azurite@$version" >&2
echo "$version" >"$place/.version"
