"""``zarrfs metrics``."""

from __future__ import annotations

import click


@click.command("metrics")
def command() -> None:
    """Print the metrics of all mounts that you can see, in OpenMetrics form.

    They are those of MOUNTPOINT/.zarrfs/metrics, each with the labels mountpoint and source, in
    one document. A mount that is dead, hung or private is named on standard error and left out.

    \b
    Examples:
      zarrfs metrics > /var/lib/prometheus/node-exporter/zarrfs.prom

    Exit status: 0 all mounts answered, 1 some did not, 2 wrong usage.
    """
    from zarrfs.daemon.status import metrics_of_all
    from zarrfs.errors import MountError

    text, silent = metrics_of_all()
    click.echo(text, nl=False)
    if silent:
        raise MountError("; ".join(silent))
