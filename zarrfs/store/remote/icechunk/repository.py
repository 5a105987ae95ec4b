"""Finds a snapshot of a repository, and converts the exceptions of ``icechunk``.

These have the kind of a failure only in their text.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fsspec.asyn import get_loop
from fsspec.implementations.local import LocalFileSystem

from zarrfs.errors import (
    NodeNotFound,
    StoreAccessDenied,
    UsageError,
    is_panic,
    reason_of,
    to_install,
)
from zarrfs.store.remote.filesystems import open_filesystem
from zarrfs.store.remote.icechunk.links import Link, Version
from zarrfs.store.remote.icechunk.metadata_files import MetadataFiles
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.ranges.ranged_reader import RangedReader
from zarrfs.store.remote.requests import Reader, RequestConfig, ServiceError
from zarrfs.store.remote.s3.s3_obstore import bucket_settings
from zarrfs.store.remote.s3.s3_service import S3Service

if TYPE_CHECKING:
    import icechunk


_T = TypeVar("_T")

_MAIN = Version("branch", "main")
_MOST_NAMES = 8
_NOT_THERE = ("ref not found", "snapshot not found", "snapshot id not found", "invalid snapshot id")
_NO_REPOSITORY = "repository doesn't exist"
_NOTHING = "there is no Icechunk repository"


class Snapshot(NamedTuple):
    """A snapshot that was found.

    session : of ``icechunk``, read-only.
    link : with the id of the snapshot for its version.
    metadata : checks manifests before ``session`` reads them.
    """

    session: icechunk.Session
    link: Link
    metadata: MetadataFiles


def find_snapshot(link: Link, options: Mapping[str, object], requests: RequestConfig) -> Snapshot:
    """The snapshot that ``link`` names now.

    Raises `UsageError` if the package is missing or an option is unknown, `NodeNotFound` if there
    is no repository or no such branch, tag or snapshot, and the errors of `failure`.
    """
    try:
        import icechunk  # noqa: PLC0415 - a slow import that few stores need
    except ImportError:
        raise UsageError(f"{link.shown}: needs a package, {to_install('icechunk')}") from None
    # It would write its log to the terminal, or into the log of the mount.
    icechunk.set_logs_filter("off")
    storage, reader, root = _storage(icechunk, link, options, requests)
    # zarrfs decides what is retried, has the cache of chunks, and checks manifests first.
    preload = icechunk.ManifestPreloadConfig(
        max_total_refs=0, preload_if=icechunk.ManifestPreloadCondition.false()
    )
    config = icechunk.RepositoryConfig(
        storage=icechunk.StorageSettings(retries=icechunk.StorageRetriesSettings(max_tries=1)),
        caching=icechunk.CachingConfig(num_bytes_chunks=0),
        manifest=icechunk.ManifestConfig(preload=preload),
    )
    version = link.version or _MAIN
    metadata = MetadataFiles(reader, root)
    try:
        metadata.check_small(list(dict.fromkeys(["config.yaml", _ref(_MAIN), _ref(version)])))
        metadata.check_whole("repo")
        # No access to virtual chunks is authorized: icechunk refuses them.
        repository = icechunk.Repository.open(storage, config)
        snapshot = _snapshot_id(repository, version)
        session = None
        if snapshot is not None:
            # Any other name is no id, and icechunk reads nothing for it.
            if snapshot.isalnum():
                metadata.check_whole(f"snapshots/{snapshot}")
            session = _session(repository, snapshot)
        if session is None:
            raise NodeNotFound(f"{link.shown}: {_what_there_is(repository, version)}")
        metadata.describe(_description(repository, session.snapshot_id))
        found = Version("snapshot", session.snapshot_id)
        resolved = Link(link.local_path or link.repository, found, link.path)
        return Snapshot(session, resolved, metadata)
    except icechunk.IcechunkError as error:
        if _NO_REPOSITORY in str(error):
            raise NodeNotFound(f"{link.shown}: {_NOTHING}") from None
        raise failure(error) from None
    except BaseException as error:
        if is_panic(error):
            raise failure(error) from None
        raise


def _ref(version: Version) -> str:
    """The file of a branch or a tag, in the first version of the format."""
    return f"refs/{version.kind}.{version.name}/ref.json"


def _snapshot_id(repository: icechunk.Repository, version: Version) -> str | None:
    """The id of the snapshot that ``version`` names; None if there is no such branch or tag."""
    if version.kind == "snapshot":
        return version.name
    look_up = repository.lookup_branch if version.kind == "branch" else repository.lookup_tag
    return _if_there(lambda: look_up(version.name))


def _session(repository: icechunk.Repository, snapshot: str) -> icechunk.Session | None:
    """A session at a snapshot; None if there is no such snapshot."""
    return _if_there(lambda: repository.readonly_session(snapshot_id=snapshot))


def _description(repository: icechunk.Repository, snapshot: str) -> str | dict[str, Any]:
    """The nodes of a snapshot and their manifests: JSON before icechunk 2, parsed since then."""

    async def ask() -> str | dict[str, Any]:
        # Without async, icechunk would keep the interpreter's lock while it waits for the store.
        return await repository.inspect_snapshot_async(snapshot)

    return asyncio.run_coroutine_threadsafe(ask(), get_loop()).result()


def _if_there(ask: Callable[[], _T]) -> _T | None:
    import icechunk  # noqa: PLC0415 - as above

    try:
        return ask()
    except icechunk.IcechunkError as error:
        if first_line(error).startswith(_NOT_THERE):
            return None
        raise


def _what_there_is(repository: icechunk.Repository, version: Version) -> str:
    if version.kind == "snapshot":
        return f"it has no snapshot {version.name!r}"
    branches = version.kind == "branch"
    names = sorted(repository.list_branches() if branches else repository.list_tags())
    plural = "branches" if branches else "tags"
    if not names:
        return f"it has no {version.kind} {version.name!r}, and no {plural}"
    more = ", …" if len(names) > _MOST_NAMES else ""
    few = ", ".join(names[:_MOST_NAMES])
    return f"it has no {version.kind} {version.name!r}; its {plural} are: {few}{more}"


def _storage(
    icechunk: Any, link: Link, options: Mapping[str, object], requests: RequestConfig
) -> tuple[Any, Reader, str]:
    """The storage of a repository, and without ``icechunk`` a reader and the path of its root."""
    if (path := link.local_path) is not None:
        if options:
            raise UsageError(f"{link.shown}: a local repository has no storage options")
        # icechunk would make a missing directory.
        if not os.path.isdir(path):
            raise NodeNotFound(f"{link.shown}: there is no directory {path}")
        files = PlainReader(LocalFileSystem(), requests)
        return icechunk.local_filesystem_storage(path), files, path
    protocol, _, _ = link.repository.partition("://")
    if protocol not in ("s3", "s3a"):
        raise UsageError(f"{link.shown}: Icechunk repositories are read from directories and s3://")
    own = options.get(protocol)
    filesystem, root = open_filesystem(
        link.repository, own if isinstance(own, Mapping) else options, requests.redact
    )
    # icechunk retries for minutes, and its messages do not say what is wrong. The first name is
    # enough to know that the bucket can be read.
    reader = RangedReader(S3Service(filesystem, requests), requests)
    if next(reader.list_dir(root), None) is None:
        raise NodeNotFound(f"{link.shown}: {_NOTHING}")
    bucket, _, prefix = root.partition("/")
    found = asyncio.run_coroutine_threadsafe(
        bucket_settings(filesystem, bucket), filesystem.loop
    ).result()
    if found is None:
        raise UsageError(f"{link.shown}: icechunk lacks one of these storage options")
    access: dict[str, Any] = {"anonymous": True}
    if not found.anonymous:
        if found.credentials is None:
            raise StoreAccessDenied(link.shown, "there are no credentials")
        access = {"get_credentials": _Current(len(_providers))}
        _providers.append(found.credentials)
    storage = icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix.strip("/") or None,
        region=found.region,
        endpoint_url=found.endpoint,
        allow_http=True,
        force_path_style=not found.virtual,
        requester_pays=found.requester_pays,
        **access,
    )
    return storage, reader, root


# icechunk pickles the function that it asks for credentials, and these functions cannot be.
_providers: list[Callable[[], dict[str, Any]]] = []


class _Current(NamedTuple):
    """Asks one of the providers for the credentials that are valid now."""

    number: int

    def __call__(self) -> Any:
        import icechunk  # noqa: PLC0415 - as above

        found = _providers[self.number]()
        return icechunk.S3StaticCredentials(
            access_key_id=found["access_key_id"],
            secret_access_key=found["secret_access_key"],
            session_token=found["token"],
            expires_after=found["expires_at"],
        )


# Failures that a retry may mend: of the connection, of a service that is busy.
_PASSING = re.compile(
    r"dispatch failure|timed? ?out|timeout|connection (?:reset|refused|closed)|connect error"
    r"|error sending request|SlowDown|ServiceUnavailable|InternalError"
    r"|StatusCode\((?:408|425|429|5\d\d)\)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|StatusCode\(40[13]\)|permission denied",
    re.IGNORECASE,
)
_MARK = re.compile(r"\s*[x×]\s+")
_LONGEST = 300


def first_line(error: BaseException) -> str:
    """The first line of an exception, without the places in the source that follow it."""
    text = str(error).strip("\n")
    line = text.partition("\n")[0]
    return _MARK.sub("", line, count=1)[:_LONGEST] or reason_of(error)


def failure(error: BaseException) -> Exception:
    """The exception to raise instead of one of ``icechunk``, or of a panic in it.

    A `ConnectionError` if a retry may help, else a `ServiceError`; 403 if access is denied.
    """
    line = first_line(error)
    if not isinstance(error, Exception):
        return ServiceError(f"icechunk failed: {line}", None, None)
    if _DENIED.search(str(error)):
        return ServiceError(line, 403, None)
    if _PASSING.search(str(error)):
        return ConnectionError(line)
    return ServiceError(line, None, None)
