"""An ``obstore`` for a bucket, with the settings of an ``s3fs`` file system.

``s3fs`` and the client below it follow the conventions of the ecosystem: options, environment,
profiles, roles, endpoints. So they find the endpoint, the region and the credentials, also those
that expire, and ``obstore`` sends the requests.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from zarrfs.store.remote.obstore_objects import NO_LIMIT, ONE_ATTEMPT

# The ``client_kwargs`` and ``config_kwargs`` that affect only endpoint, region and credentials, or
# how s3fs waits and retries.
_UNDERSTOOD_CLIENT = frozenset(
    {
        "region_name",
        "endpoint_url",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
    }
)
_UNDERSTOOD_CONFIG = frozenset(
    {"retries", "max_pool_connections", "connect_timeout", "read_timeout", "region_name", "s3"}
)
_REGIONS = {None: "us-east-1", "aws-global": "us-east-1"}
_ADDRESSING = "addressing_style"
# How often obstore asks for credentials that expire; the s3fs client renews them in time.
_RENEWED = timedelta(minutes=5)


async def obstore_for(filesystem: Any, bucket: str) -> Any | None:
    """None if ``obstore`` lacks one of the settings of ``filesystem``."""
    try:
        from obstore.store import S3Store  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return None
    client_options = filesystem.client_kwargs
    config = filesystem.config_kwargs
    addressing = dict(config.get("s3") or {})
    style = addressing.pop(_ADDRESSING, "auto")
    if (
        client_options.keys() - _UNDERSTOOD_CLIENT
        or config.keys() - _UNDERSTOOD_CONFIG
        or addressing
        or filesystem.s3_additional_kwargs
        or bucket.startswith("arn:")
        or bucket.endswith("--x-s3")
    ):
        return None
    await filesystem.set_session()
    client = await filesystem.get_s3(bucket)
    settings: dict[str, Any] = {
        "region": _REGIONS.get(client.meta.region_name, client.meta.region_name),
        **_place(client.meta.endpoint_url, bucket, style),
    }
    if filesystem.anon:
        settings["skip_signature"] = True
    elif (provider := await _credentials(filesystem, client_options)) is None:
        return None
    else:
        settings["credential_provider"] = provider
    if filesystem.req_kw.get("RequestPayer"):
        settings["request_payer"] = True
    return S3Store(
        bucket,
        **settings,
        client_options={**NO_LIMIT, "allow_http": True},
        retry_config=ONE_ATTEMPT,
    )


def _place(endpoint: str, bucket: str, style: str) -> dict[str, Any]:
    """The address of the bucket: a path below the endpoint, or a host of its own."""
    parts = urlsplit(endpoint)
    of_aws = (parts.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
    # Like botocore: an endpoint that the user named has hosts for buckets only on request.
    virtual = style == "virtual" or (style == "auto" and of_aws)
    if not virtual or "." in bucket:
        return {"endpoint": endpoint, "virtual_hosted_style_request": False}
    host = urlunsplit((parts.scheme, f"{bucket}.{parts.netloc}", parts.path, "", ""))
    return {"endpoint": host, "virtual_hosted_style_request": True}


async def _credentials(filesystem: Any, client_options: Any) -> Any | None:
    """The provider of credentials for ``obstore``; None if there are no credentials."""
    key = filesystem.key or client_options.get("aws_access_key_id")
    secret = filesystem.secret or client_options.get("aws_secret_access_key")
    token = filesystem.token or client_options.get("aws_session_token")
    if key and secret:

        def given() -> dict[str, Any]:
            return {
                "access_key_id": key,
                "secret_access_key": secret,
                "token": token,
                "expires_at": None,
            }

        return given
    found = await filesystem.session.get_credentials()
    if found is None:
        return None

    async def current() -> dict[str, Any]:
        frozen = await found.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _RENEWED,
        }

    return current
