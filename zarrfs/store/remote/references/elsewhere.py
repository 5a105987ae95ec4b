"""HTTP sessions that do not reach this machine. Needs aiohttp, which not all extras bring."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from zarrfs.store.remote.requests import BadReply

Host = tuple[str, int]
"""A host and a port."""


async def elsewhere(named: Host | None, **options: Any) -> aiohttp.ClientSession:
    """An HTTP session (``get_client`` of fsspec) that does not reach this machine and its link.

    The author of a document on the network could otherwise present, as chunks, the replies of
    services that answer this machine alone.

    named : where the document itself lies, which its references may name; None: nowhere.
    """
    return aiohttp.ClientSession(**{"connector": _Connector(named), **options})


class _Connector(aiohttp.TCPConnector):
    """Connects to other machines only, also if a reply redirects or a name resolves to this one."""

    def __init__(self, named: Host | None) -> None:
        super().__init__(resolver=_Resolver(named))
        self._own_host = named

    async def connect(self, req: Any, *rest: Any, **others: Any) -> Any:
        # An address is not resolved.
        _check(req.url.host, (req.url.host, req.url.port), self._own_host)
        return await super().connect(req, *rest, **others)


class _Resolver(AbstractResolver):
    def __init__(self, named: Host | None) -> None:
        self._named = named
        self._resolver = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for result in found:
            _check(result["host"], (host, port), self._named)
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _check(address: str, host: Host, named: Host | None) -> None:
    """Raises BadReply if it is an address of this machine or its link, and not that named."""
    if host != named and is_near(address):
        raise BadReply(
            f"a document of references from the network must not name {host[0]}, which is this "
            "machine or its link, unless the storage option remote_protocol says http"
        )


def is_near(address: str) -> bool:
    """Whether it is an address of loopback or of the link; False for a name."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    # Linux connects to this machine for 0.0.0.0.
    return found.is_loopback or found.is_link_local or found.is_unspecified
