"""Mounts for scripts, which tests start in place of ``zarrfs mount``, with daemons of their own."""

import itertools
from collections.abc import Callable, Sequence

from zarrfs.daemon.mount import mount
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.request import MountRequest


def mount_scripted(
    source: str, mount_point: str, arguments: Sequence[str], serve: Callable[..., None]
) -> None:
    """Mounts with the options that follow each ``-o``; ``serve`` is the daemon, after the fork."""
    options = [text for flag, text in itertools.pairwise(arguments) if flag == "-o"]
    mount(
        MountRequest(source=source, mount_point=mount_point, options=parse_options(options)), serve
    )
