#!/usr/bin/env bash
# A sharded, compressed array, read with tools that know nothing of Zarr: `make demo`.
# Needs zarrfs, numpy and zarr-python on the PATH.
set -euo pipefail

work=$(mktemp -d -t zarrfs-demo.XXXXXX)

cleanup() {
    status=$?
    cd /
    # Not `mountpoint`: it fails on a mount whose daemon has died.
    if grep -qF " $work/mnt fuse" /proc/self/mounts; then
        zarrfs umount "$work/mnt" || fusermount3 -u -z "$work/mnt" || true
    fi
    rm -rf --one-file-system "$work"
    [ "$status" -eq 0 ] || echo "FAILED" >&2
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP PIPE

run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

cd "$work"
mkdir mnt

echo "Making cells.zarr with zarr-python: 100 x 480 x 700 of uint16, in shards of 64 x 256 x 256,"
echo "in them chunks of 16 x 64 x 64, compressed with zstd."
python - <<'PYTHON'
import numpy as np
import zarr

shape = (100, 480, 700)
rng = np.random.default_rng(0)
image = np.full(shape, 100, np.float32)
for centre in rng.uniform(0, shape, (60, 3)):
    z, y, x = (
        np.exp(-(((np.arange(n, dtype=np.float32) - c) / 12) ** 2), dtype=np.float32)
        for n, c in zip(shape, centre, strict=True)
    )
    image += 900 * z[:, None, None] * (y[:, None] * x)
image += rng.standard_normal(shape, np.float32) * np.sqrt(image)  # shot noise

array = zarr.create_array(
    "cells.zarr",
    shape=shape,
    shards=(64, 256, 256),
    chunks=(16, 64, 64),
    dtype="uint16",
    compressors=zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"),
)
array[:] = image.clip(0, 65535).astype(np.uint16)
PYTHON

run 'du -sh --apparent-size cells.zarr'
run 'zarrfs mount cells.zarr mnt'
run 'ls -l mnt'
run 'ls mnt/chunks/0/0'
run 'dd if=mnt/array.bin bs=1400 skip=24240 count=1 status=none | od -A d -t u2 -N 64 # row [50, 240]'
run 'python -c "
import numpy as np
a = np.memmap(\"mnt/array.bin\", np.uint16, \"r\", shape=(100, 480, 700))
print(a[50, 240, 0], a[50].mean())"'
run 'python -c "
import numpy as np
print(np.load(\"mnt/array.npy\", mmap_mode=\"r\")[50, 240, :8])"'
run 'sha256sum mnt/array.bin' | tee served
run 'python -c "
import hashlib, zarr
print(hashlib.sha256(zarr.open_array(\"cells.zarr\")[:]).hexdigest(), \"zarr-python\")"' | tee expected
run 'cat mnt/.zarrfs/stats.json'
run 'zarrfs umount mnt'

hash_of() { grep -oE '^[0-9a-f]{64}' "$1"; }
if [ "$(hash_of served)" != "$(hash_of expected)" ]; then
    printf '\nThe checksums differ.\n' >&2
    exit 1
fi
printf '\nOK: every byte is what zarr-python reads.\n'
