#!/usr/bin/env bash
# dist/zarrfs_VERSION_ARCH.deb for the release of Debian or Ubuntu that this runs on: zarrfs and its
# Python packages below /opt/zarrfs, with pyfuse3 compiled. A new system from debootstrap then
# installs the package, mounts an array if the kernel allows, and removes the package. Without root
# the package is only unpacked and run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
unset PYTHONPATH

fail() {
    echo "make package: $*" >&2
    exit 1
}
command -v dpkg-deb >/dev/null || fail "a Debian package is built on Debian or Ubuntu"
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is not Python 3.11 or later; name one: make package PYTHON=/usr/bin/python3.11"
minor=$("$python" -c 'import sys; print(sys.version_info[1])')

work=$(mktemp -d -t zarrfs-package.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
stage=$work/stage opt=$work/stage/opt/zarrfs

# --- the files -------------------------------------------------------------------

said=$(.venv/bin/python -m hatchling build -t wheel -d "$work" 2>&1) || fail "$said"
wheel=$(echo "$work"/zarrfs-*.whl)
version=$(basename "$wheel" | cut -d- -f2)
"$python" -m venv --without-pip "$opt"
# The versions that everything else is tested with.
grep -oE '^[A-Za-z0-9._-]+==[^ ;\]+' .ci/requirements.lock >"$work/locked"
.venv/bin/pip --quiet --disable-pip-version-check --no-input --python "$opt/bin/python3" install \
    --no-compile --constraint "$work/locked" "$wheel[mount,s3,http]"

rm -rf "$opt"/bin/* "$opt"/lib64 "$opt"/include
ln -s "/usr/bin/python3.$minor" "$opt/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$opt/pyvenv.cfg"
for program in "zarrfs main" "mount.zarrfs mount_helper"; do
    read -r name module <<<"$program"
    printf '#!/opt/zarrfs/bin/python3 -I\nfrom zarrfs.cli.%s import main\n\nmain()\n' "$module" \
        >"$opt/bin/$name"
    chmod 755 "$opt/bin/$name"
done
"$python" -m compileall -q -s "$stage" -p / "$opt/lib" || fail "some module cannot be compiled"

"$opt/bin/python3" -I -m zarrfs setup --root "$stage" --program "$opt/bin/zarrfs" >"$work/setup.log" 2>&1 ||
    fail "zarrfs setup: $(cat "$work/setup.log")"
find "$stage/etc" "$stage/sbin" -type f -exec sed -i "s|$stage||g; s|^package=.*|package=|" {} +
mkdir -p "$stage"/usr/{bin,lib/systemd/system,lib/tmpfiles.d,sbin,share}
mv "$stage"/etc/systemd/system/* "$stage/usr/lib/systemd/system/"
mv "$stage"/etc/tmpfiles.d/* "$stage/usr/lib/tmpfiles.d/"
mv "$stage"/sbin/* "$stage/usr/sbin/"
rm -r "$stage/etc" "$stage/sbin"
mv "$opt"/share/* "$stage/usr/share/"
rmdir "$opt/share"
gzip -9n "$stage"/usr/share/man/man?/*
cp LICENSE "$stage/usr/share/doc/zarrfs/copyright"
ln -s /opt/zarrfs/bin/zarrfs "$stage/usr/bin/zarrfs"

# --- the package -----------------------------------------------------------------

extension=$(find "$opt/lib" -name '__init__.cpython-*.so' -path '*pyfuse3*' | head -1)
libfuse=$(ldd "$extension" | awk '/libfuse3/ {print $3}')
libfuse=$(dpkg -S "*/$(basename "$(realpath "$libfuse")")" | cut -d: -f1) # below /lib or /usr/lib
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<CONTROL
Package: zarrfs
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The zarrfs authors <zarrfs@localhost>
Installed-Size: $(du -sk "$stage" | cut -f1)
Depends: python3 (>= 3.$minor), python3 (<< 3.$((minor + 1))), fuse3, $libfuse, libzstd1
Section: science
Priority: optional
Description: Mount Zarr arrays as ordinary files
 Programs that know nothing of Zarr read and write the arrays: dd, mmap, NumPy,
 C, Fortran, MATLAB, IDL, GDAL, ITK, ffmpeg.
CONTROL
cat >"$stage/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    systemd-tmpfiles --create zarrfs.conf || true
fi
SCRIPT
cat >"$stage/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
# Python may have compiled modules anew. Settings and journals stay.
rm -rf /opt/zarrfs
# dpkg removes a directory that is empty then, also one that was there before.
[ -d /opt ] || mkdir -m 755 /opt
for directory in /etc/zarrfs /var/lib/zarrfs/journal /var/lib/zarrfs /run/zarrfs; do
    rmdir "$directory" 2>/dev/null || true
done
[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
SCRIPT
chmod 755 "$stage"/DEBIAN/post*
mkdir -p dist
package=$root/dist/zarrfs_${version}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group -Zzstd -z9 -b "$stage" "$package" >/dev/null
echo "Built $(realpath --relative-to=. "$package"), $(du -h "$package" | cut -f1);" \
    "it installs $(du -sh "$stage" | cut -f1)"

# --- a trial ---------------------------------------------------------------------

if [ "$(id -u)" -ne 0 ]; then
    dpkg-deb -x "$package" "$work/unpacked"
    "$work/unpacked/opt/zarrfs/bin/python3" -I -m zarrfs --version
    echo "OK, but installed nowhere: that needs root"
    exit
fi
system=$work/system
. /etc/os-release
mirror=$(apt-get indextargets --format '$(SITE)' "Codename: $VERSION_CODENAME" 2>/dev/null | head -1)
if ! debootstrap --variant=minbase --include="python3,fuse3,$libfuse,libzstd1" "$VERSION_CODENAME" \
    "$system" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1; then
    fail "debootstrap: $(tail -1 "$work/debootstrap.log")"
fi
files() {
    find "$system" -xdev \( -path "$system/proc" -o -path "$system/var/lib/dpkg" \
        -o -path "$system/var/log" -o -path "$system/var/cache" \) -prune -o -print | sort
}
cp "$package" "$system/zarrfs.deb"
files >"$work/before"
chroot "$system" dpkg -i /zarrfs.deb >"$work/install.log" 2>&1 || fail "$(cat "$work/install.log")"
[ "$(chroot "$system" zarrfs --version)" = "zarrfs $version" ] || fail "zarrfs --version"
cat >"$work/trial" <<'TRIAL'
set -eu
cd /root
zarrfs create a.zarr --shape 4,4 --dtype uint16
zarrfs info a.zarr >/dev/null
if ! [ -c /dev/fuse ] || ! mount -t zarrfs -o rw a.zarr /mnt; then
    echo "Nothing was mounted: the kernel does not allow it here"
    exit
fi
printf '\1\2' | dd of=/mnt/array.bin conv=notrunc status=none
zarrfs umount /mnt
[ "$(zarrfs export a.zarr - | od -A n -t u2 -N 4 | xargs)" = "513 0" ]
place=$(zarrfs mount a.zarr)
[ "$(od -A n -t u2 -N 4 "$place/array.bin" | xargs)" = "513 0" ]
zarrfs umount "$place"
rm -r a.zarr
echo "Mounted, written and read in a new system"
TRIAL
cp "$work/trial" "$system/trial"
unshare -m --propagation unchanged sh -ec '
    # Nothing of this is to be mounted outside. The root of a chroot is no mount point.
    if ! mount --make-rprivate / 2>/dev/null; then
        mount --bind "$1" "$1"
        trap "umount -R -l \"$1\"" EXIT
        mount --make-private "$1"
    fi
    mount -t proc proc "$1/proc"
    if [ -c /dev/fuse ]; then
        touch "$1/dev/fuse"
        mount --bind /dev/fuse "$1/dev/fuse"
    fi
    chroot "$1" sh /trial
' sh "$system" || fail "the package does not work in a new system"
chroot "$system" dpkg -P zarrfs >"$work/remove.log" 2>&1 || fail "$(cat "$work/remove.log")"
rm -f "$system/trial" "$system/dev/fuse"
files >"$work/after"
diff "$work/before" "$work/after" >"$work/left" || fail "removing leaves: $(cat "$work/left")"
echo "OK: $(basename "$package") installs, works and is removed in a new $VERSION_CODENAME"
