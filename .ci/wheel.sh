#!/usr/bin/env bash
# The clean room: the sdist, from that the wheel, and that in a fresh environment, where the demo
# must run. `.venv` is only asked for its Python and for hatchling.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
unset PYTHONPATH

work=$(mktemp -d -t zarrfs-wheel.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
fail() {
    echo "$*" >&2
    exit 1
}

said=$(.venv/bin/python -m hatchling build -t sdist -d "$work" 2>&1) || fail "$said"
.venv/bin/python -m venv "$work/venv"
bin=$work/venv/bin
pip=("$bin/pip" --quiet --disable-pip-version-check --no-input)
"${pip[@]}" wheel --no-deps --wheel-dir "$work" "$work"/zarrfs-*.tar.gz
wheel=$(echo "$work"/zarrfs-*.whl)

# The versions that everything else is tested with; pip keeps the pyfuse3 that it compiled once.
grep -oE '^[A-Za-z0-9._-]+==[^ ;\]+' .ci/requirements.lock >"$work/locked"
install() { "${pip[@]}" install --no-compile --constraint "$work/locked" "$@"; }

cd "$work"
install "$wheel"
[ "$("$bin/zarrfs" --version)" = "zarrfs $("$root/.venv/bin/python" -c "
import sys; sys.path.insert(0, '$root')
import zarrfs; print(zarrfs.__version__)")" ] || fail "zarrfs --version is not that of the sources"
mkdir group.zarr mnt
echo '{"zarr_format": 3, "node_type": "group"}' >group.zarr/zarr.json
said=$("$bin/zarrfs" mount group.zarr mnt 2>&1) && fail "mounted without the extra mount"
[[ $said == "zarrfs: cannot load "*"pip install '.[mount]'" && $said != *$'\n'* ]] ||
    fail "without the extra mount, zarrfs mount says: $said"

install "$wheel[mount]" zarr
for file in man/man1/zarrfs.1 man/man1/zarrfs-mount.1 man/man8/mount.zarrfs.8 \
    bash-completion/completions/zarrfs zsh/site-functions/_zarrfs \
    fish/vendor_completions.d/zarrfs.fish doc/zarrfs/CHANGELOG.md doc/zarrfs/SECURITY.md; do
    [ -s "$work/venv/share/$file" ] || fail "the wheel does not bring share/$file"
done
"$bin/zarrfs" setup --root "$work/root" >setup.log || fail "zarrfs setup: $(cat setup.log)"
grep -q "zarrfs@.service" setup.log || fail "the wheel does not bring the systemd units"
PATH=$bin:$PATH "$root/docs/demo.sh" >demo.log || { cat demo.log; fail "the demo failed"; }
tail -1 demo.log
echo "OK: $(basename "$wheel") installs and serves in a fresh environment."
