"""Who may open which page: roles, tokens in addresses, and what requests must look like."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PRESENTER, VIEWER = "presenter", "viewer"
TOKEN_BYTES = 24


def new_token() -> str:
    """An unguessable part of an address (192 random bits)."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of both roles. Without a ``presenter`` token there are only viewers."""

    presenter: str = ""
    viewer: str = field(default_factory=new_token)

    def role(self, token: str, peer: str) -> str | None:
        """The role of a request with this token from the address ``peer``; None: neither.

        The presenter's page controls a measurement, with the rights of the user who started the
        server, so only this machine may open it.
        """
        encoded = token.encode("utf-8", "replace")
        if self.presenter and hmac.compare_digest(encoded, self.presenter.encode()):
            return PRESENTER if is_loopback(peer) else None
        return VIEWER if hmac.compare_digest(encoded, self.viewer.encode()) else None


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine's own."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ipv4 = getattr(ip, "ipv4_mapped", None)
    return bool((ipv4 or ip).is_loopback)


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a WebSocket was opened by a page of this server, not by another site's page."""
    origin = headers.get("Origin", "")
    return bool(origin) and urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
