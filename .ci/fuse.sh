#!/usr/bin/env bash
# What a mount needs of the running kernel. Not kept over a reboot, so asked for each time.
set -euo pipefail

[ -e /dev/fuse ] || modprobe fuse 2>/dev/null || true
if ! { [ -r /dev/fuse ] && [ -w /dev/fuse ]; }; then
    echo "zarrfs needs /dev/fuse, which is missing or closed to $(id -un); in a container, start it with: --device /dev/fuse --cap-add SYS_ADMIN" >&2
    exit 1
fi
# Through its abort files a mount that hangs can be freed.
connections=/sys/fs/fuse/connections
if [ "$(id -u)" -eq 0 ] && [ -d "$connections" ] && ! mountpoint -q "$connections"; then
    if mount -t fusectl none "$connections" 2>/dev/null; then
        echo "Mounted fusectl at $connections, so that a mount that hangs can be ended"
    fi
fi
