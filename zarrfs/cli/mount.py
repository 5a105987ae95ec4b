"""``zarrfs mount``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from zarrfs.cli.options import storage_options


class _MountCommand(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from zarrfs.daemon.options.options import IGNORED_HELP, OPTIONS

        with formatter.section("Mount options (-o)"):
            formatter.write_dl(
                [
                    (
                        f"{option.name}={option.metavar}" if option.metavar else option.name,
                        f"{option.help} [default: {option.default}]",
                    )
                    for option in OPTIONS
                ],
                col_max=26,
            )
        formatter.write_paragraph()
        formatter.write_text(IGNORED_HELP)
        super().format_epilog(ctx, formatter)


@click.command("mount", cls=_MountCommand)
@click.argument("source", nargs=-1, required=True, metavar="SOURCE… [MOUNTPOINT]")
@click.option(
    "-o",
    "mount_options",
    metavar="OPTION[=VALUE],…",
    multiple=True,
    help="Mount options, listed below; may be given several times.",
)
@click.option(
    "--path",
    metavar="PATH",
    help="Show only the group or array at this path below SOURCE; the same as -o path=PATH.",
)
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground and log there.")
@click.option("-v", "--verbose", is_flag=True, help="Log more; the same as -o log_level=debug.")
@storage_options
# mount(8) passes these: there is no mtab to write, and unknown options stay errors.
@click.option("-n", is_flag=True, hidden=True, expose_value=False)
@click.option("-s", is_flag=True, hidden=True, expose_value=False)
def command(
    source: tuple[str, ...],
    mount_options: tuple[str, ...],
    path: str | None,
    storage_options: Mapping[str, object],
    *,
    foreground: bool,
    verbose: bool,
) -> None:
    """Mount SOURCE, a Zarr array or hierarchy, at the directory MOUNTPOINT.

    Without MOUNTPOINT, zarrfs makes a directory named after SOURCE (or PATH) in
    $XDG_RUNTIME_DIR/zarrfs (root: /run/zarrfs; without these: /tmp/zarrfs-UID), prints it, and
    removes it when the mount ends.

    Several sources are one mount, with a directory for each that is named after it.

    SOURCE is a directory, a .zip file, a NetCDF, HDF5, TIFF or GRIB file, or any URL that
    fsspec opens. A directory that holds Zarr and other files is mounted with all of them. The mount
    is read-only without -o rw. The command returns when the mount is ready. To end the mount, use
    "zarrfs umount MOUNTPOINT", which also reports changes that cannot be stored; umount and
    SIGTERM work too.

    \b
    Examples:
      zarrfs mount data.zarr /mnt/data
      cd $(zarrfs mount data.zarr)
      zarrfs mount weather.nc /mnt/weather
      zarrfs mount image.zarr /mnt/level --path 0
      zarrfs mount raw.zarr labels.zarr s3://bucket/more.zarr /mnt/data
      zarrfs mount s3://bucket/data.zarr /mnt/data --storage-option anon=true
      zarrfs mount zip://::https://example.org/data.zip /mnt/data
      zarrfs mount -o rw data.zarr /mnt/data
      zarrfs mount -o order=F,memory=4G data.zarr /mnt/data
      zarrfs mount -f -v data.zarr /mnt/data

    \b
    An array is a directory with
      array.bin     all elements, one after the other
      array.npy     the same for numpy.load(…, mmap_mode="r"), with -o rw also "r+"
      array.h5      the same as HDF5; array.nhdr, array.bin.hdr and others: -o views
                    (with -o names=node, of an array raw: raw.bin, raw.npy, raw.h5)
      chunks/i/j    the decoded chunks, shards/i/j the decoded shards
    A group is a directory of its children, with all its arrays in group.h5. MOUNTPOINT/.zarrfs/
    has the options in force (config.json) and counters and errors (stats.json).

    With -o rw, data is in the store when fsync, msync or close returns without an error. Files keep
    their size: truncation to the same size or to zero changes nothing. With -o rw,resize, appending
    to array.bin and truncating it resize the array along its first axis. With -o rw,allow_remove,
    removing a chunk file sets its elements to the fill value.

    Defaults for options, by source and mount point, may stand in /etc/zarrfs/config.toml and
    ~/.config/zarrfs/config.toml.

    Exit status: 0 mounted, 1 not mounted, 2 wrong usage.
    """
    from zarrfs.daemon.mount import mount
    from zarrfs.daemon.options.config_file import configured
    from zarrfs.daemon.options.option_parser import parse_options
    from zarrfs.daemon.request import MountRequest
    from zarrfs.daemon.system.process_title import hide
    from zarrfs.store.redact import shown_url

    sources, mountpoint = (source, None) if len(source) == 1 else (source[:-1], source[-1])
    hide({source: shown_url(source) for source in sources})
    mount_options = (*configured(sources, mountpoint), *mount_options)
    if path is not None:
        mount_options = (*mount_options, "path=" + path.replace(",", "\\,"))
    if verbose:
        mount_options = (*mount_options, "log_level=debug")
    mount(
        MountRequest(
            source=sources[0],
            more=sources[1:],
            mount_point=mountpoint,
            options=parse_options(mount_options),
            storage_options=storage_options,
            foreground=foreground,
        ),
        announce=click.echo if mountpoint is None else lambda path: None,
    )
    # In the foreground, past threads that a store which does not answer may hold. In the
    # background, without the teardown of the interpreter, for which the user would wait.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
