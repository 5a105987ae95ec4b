"""A container of Azure's, with the settings of an ``adlfs`` file system."""

from __future__ import annotations

import asyncio
import importlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from zarrfs.store.base import Generation
from zarrfs.store.remote.clouds.cloud_service import Bucket
from zarrfs.store.remote.obstore_objects import NO_LIMIT, ONE_ATTEMPT
from zarrfs.store.remote.requests import NotAsExpected, ServiceMissing

_SCOPE = "https://storage.azure.com/.default"
_TIMEOUT_S = 60.0


def azure_bucket(filesystem: Any, name: str) -> Bucket | None:
    """None if ``obstore`` is not installed or lacks one of the settings."""
    try:
        from obstore.store import AzureStore  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return None
    client = filesystem.service_client
    if filesystem.version_aware or filesystem.location_mode != "primary":
        return None
    parts = urlsplit(client.primary_endpoint)
    settings: dict[str, Any] = {
        "account_name": client.account_name,
        "endpoint": urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")),
    }
    credential = client.credential
    if hasattr(credential, "account_key"):
        settings["account_key"] = credential.account_key
    elif hasattr(credential, "get_token"):
        settings["credential_provider"] = _tokens(credential)
    elif parts.query:
        settings["credential_provider"] = lambda: {
            "sas_token": parse_qsl(parts.query),
            "expires_at": None,
        }
    elif credential is None:
        settings["skip_signature"] = True
    else:
        return None
    store = AzureStore(
        name,
        **settings,
        client_options={**NO_LIMIT, "allow_http": True},
        retry_config=ONE_ATTEMPT,
    )

    def delete(key: str, state: Generation | None) -> None:
        etag = None if state is None else str(state[0])
        asyncio.run_coroutine_threadsafe(
            _delete(filesystem, name, key, etag), filesystem.loop
        ).result()

    return Bucket(name, store, _condition, delete, suffixes=False)


def _condition(state: Generation) -> dict[str, str] | None:
    return {"e_tag": state[0]} if state and isinstance(state[0], str) else None


async def _delete(filesystem: Any, container: str, key: str, etag: str | None) -> None:
    core: Any = importlib.import_module("azure.core")
    errors: Any = importlib.import_module("azure.core.exceptions")
    blob = filesystem.service_client.get_blob_client(container, key)
    condition = {}
    if etag is not None:
        condition = {"etag": etag, "match_condition": core.MatchConditions.IfNotModified}
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await blob.delete_blob(**condition)
    except errors.ResourceModifiedError as error:
        raise NotAsExpected from error
    except errors.ResourceNotFoundError as error:
        if error.error_code == "ContainerNotFound":
            raise ServiceMissing(str(error.reason), 404, "ContainerNotFound") from error
        raise FileNotFoundError(key) from error


def _tokens(credential: Any) -> Any:
    async def current() -> dict[str, Any]:
        token = credential.get_token(_SCOPE)
        token = await token if asyncio.iscoroutine(token) else token
        return {"token": token.token, "expires_at": datetime.fromtimestamp(token.expires_on, UTC)}

    return current
