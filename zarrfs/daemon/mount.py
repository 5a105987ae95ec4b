"""Mounting: what can be refused is refused here, before a process is started."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from zarrfs.daemon.own_mount_point import make_mount_point, remove_mount_point
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.checks import shows_private
from zarrfs.daemon.system.background import Ready, run_in_background
from zarrfs.errors import MountError, UsageError, to_install
from zarrfs.fuse.mount_point import check_can_mount, prepare_mount_point, resolve_mount_point

# The packages of the extra ``mount``, and the system packages that they need.
_OF_THE_EXTRA = ("pyfuse3", "trio")
_SYSTEM_PACKAGES = "fuse3 libfuse3-dev pkg-config gcc python3-dev"


Serve = Callable[[MountRequest, Ready], None]
"""As `zarrfs.daemon.life.serve.serve`."""


def mount(
    request: MountRequest,
    serve: Serve | None = None,
    announce: Callable[[str], None] = lambda path: None,
) -> None:
    """Mounts; returns when the mount answers, or in the foreground when it has ended.

    serve : what the daemon does; for tests.
    announce : called with the mount point when the mount answers.

    Raises `ZarrfsError` with one line that says why not; nothing is mounted then.
    """
    options = request.options
    request = request._replace(
        storage_options={**_from_file(options.storage_options), **request.storage_options},
    )
    check_can_mount(others=options.allow_other or options.allow_root)
    if request.mount_point is None:
        path = make_mount_point(options.path or request.source)
        request = request._replace(mount_point=path, made=True)
    else:
        path = resolve_mount_point(request.mount_point)
        request = request._replace(mount_point=path)
        prepare_mount_point(path, allow_nonempty=options.nonempty)
    try:
        _run(request, serve, announce)
    except BaseException:
        if request.made:
            remove_mount_point(path)
        raise


def _run(request: MountRequest, serve: Serve | None, announce: Callable[[str], None]) -> None:
    options = request.options

    for path in filter(None, (shows_private(source, options) for source in request.sources)):
        sys.stderr.write(
            f"zarrfs: warning: other users cannot read {path}, but allow_other shows them what it "
            "holds; -o umask=077 keeps them out\n"
        )

    def run(ready: Ready) -> None:
        (serve or _load_serve())(request, ready)

    def ready() -> bool:
        announce(request.place)
        return True

    if request.foreground:
        run(ready)
    else:
        run_in_background(run, mount_point=request.place, log_file=options.log_file)
        announce(request.place)


def _from_file(path: str | None) -> Mapping[str, object]:
    """Storage options. Errors never quote the file: its content may be secret."""
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"option storage_options: {path}: {error.strerror}") from error
    except ValueError:
        raise UsageError(f"option storage_options: {path} is not JSON") from None
    if not isinstance(found, dict):
        raise UsageError(f"option storage_options: {path} holds no JSON object")
    return found


def _load_serve() -> Serve:
    # Only in the daemon: these imports take longer than everything else, and some start
    # threads, which would not survive the fork. Nothing becomes garbage meanwhile; `serve`
    # turns the collector on again. Of NumPy's linear algebra nothing is used.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from zarrfs.daemon.life import serve  # noqa: PLC0415
    except ImportError as error:
        if error.name not in _OF_THE_EXTRA:
            raise
        missing = isinstance(error, ModuleNotFoundError)
        raise MountError(
            f"cannot load {error.name}{'' if missing else f' ({error})'}, which mounting needs: "
            f"apt-get install {_SYSTEM_PACKAGES}, then, {to_install('mount')}"
        ) from error
    return serve.serve
