#!/usr/bin/env bash
# Quick tests with every Python that zarrfs supports, and with the newest versions of all it needs:
# `versions.sh`, or `versions.sh 3.12 newest`. The last lines say what was tested, and what was not.
#
# Fails where a test fails with the locked versions. With the newest ones, and with a Python of
# Debian's unstable release, it only says so: what others release today must not hold up a change of
# today.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Of real mounts: reading, writing, worker processes, the end, and what is private to pyfuse3.
tests=(tests/unit tests/fs tests/store tests/mount/reading/test_reading.py tests/mount/writing/test_writing.py
    tests/mount/workers/test_workers.py tests/mount/life/test_lifecycle.py tests/mount/requests/test_request_wait.py)
[ -z "${TESTS:-}" ] || read -ra tests <<<"$TESTS"
extras=mount,http,s3,gcs,azure,icechunk,msgpack,pcodec,zfp,parquet,netcdf,grib,tiff
versions="3.11 3.12 3.13 3.14"
main=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
places=$root/.venv/versions
lines=() status=0 last=$main
mkdir -p "$places"

say() {
    lines+=("$*")
    echo "== $*"
}

# The interpreter of a version: on the PATH, where pyenv and uv put theirs, or for the newest
# that of Debian's unstable release, on a Debian that reaches it.
find_python() {
    local candidate sid=$places/sid-$1
    for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python3 \
        "$HOME"/.local/share/uv/python/cpython-"$1".*/bin/python3 "$sid/root/usr/bin/python$1"; do
        if "$candidate" -c "import ensurepip, sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    [ "$1" = "${versions##* }" ] && grep -qs '^ID=debian' /etc/os-release &&
        .ci/sid_python.sh "$1" "$sid" 2>"$places/sid-$1.log"
}

pip() {
    "$place/bin/pip" --quiet --disable-pip-version-check --no-input "$@" 2> >(grep -v '^WARNING: Loc' >&2)
}

# Everything as it is locked. Where a test's own dependency has no build for this Python, without it.
install_locked() {
    local requirement
    pip install --no-compile --require-hashes -r .ci/build.lock || return
    if ! pip install --no-compile --require-hashes --no-build-isolation -r .ci/requirements.lock; then
        pip install --no-compile --require-hashes --no-build-isolation -r .ci/demo.lock || return
        for requirement in $(grep -oP '^[A-Za-z0-9._-]+==[^ ;\\]+' .ci/requirements.lock); do
            pip install --no-compile --no-deps --only-binary :all: "$requirement" 2>/dev/null ||
                missing+=("${requirement%%==*}")
        done
    fi
    pip install --no-deps --no-build-isolation --editable .
}

install_newest() {
    pip install --upgrade pip && pip install --no-compile --editable ".[$extras]" --group dev
}

# What differs from the lock, as "numpy 2.4.6 -> 2.5.0".
differences() {
    "$place/bin/pip" --disable-pip-version-check freeze --exclude-editable 2>/dev/null |
        while IFS== read -r name _ version; do
            locked=$(grep -ioP "^${name//_/[-_]}==\K[^ ;\\\\]+" .ci/requirements.lock)
            [ -z "$locked" ] || [ "$locked" = "$version" ] || echo "$name $locked -> $version"
        done
}

run_tests() {
    ZARRFS_WITHOUT=$(IFS=,; echo "${missing[*]}") "$place/bin/python" -m pytest \
        -p tests.without -n logical --maxprocesses 4 --dist loadfile -q "${tests[@]}"
}

# One job: a fresh environment, made by the function `install_$2`, and the tests in it.
job() {
    local kind=$2 python=$3 begun=$SECONDS
    place=$places/$1 missing=()
    echo "== $kind versions, $("$python" --version)"
    # Debian has the pip of a new environment in a package of its own.
    if ! "$python" -m venv --clear --without-pip "$place" ||
        ! .venv/bin/pip --quiet --python "$place/bin/python" install pip || ! "install_$kind"; then
        result="cannot be installed"
        return 1
    fi
    [ "$kind" = locked ] || differences
    run_tests
    local code=$?
    result="$([ $code = 0 ] && echo passed || echo FAILED), $(((SECONDS - begun + 59) / 60)) minutes"
    [ ${#missing[@]} = 0 ] || result+="; SKIPPED for want of a build: ${missing[*]}"
    return $code
}

wanted=${*:-$versions newest}
for version in $versions; do
    if python=$(find_python "$version"); then
        [[ $python == *"/sid-$version/"* ]] || last=$version
    elif [[ " $wanted " == *" $version "* ]] || [ $# = 0 ]; then
        say "Python $version: SKIPPED, there is none on this machine"
        continue
    fi
    if [ $# = 0 ] && [ "$version" = "$main" ]; then
        say "Python $version: tested by \`make test\`"
    elif [ $# = 0 ] || [[ " $* " == *" $version "* ]]; then
        job "$version" locked "$python" || [[ $python == *"/sid-$version/"* ]] || status=1
        say "Python $version: $result"
    fi
done
if [ $# = 0 ] || [[ " $* " == *" newest "* ]]; then
    job newest newest "$(find_python "$last")"
    say "Newest versions of all packages, Python $last: $result"
fi
printf '%s\n' "" "${lines[@]}"
exit $status
