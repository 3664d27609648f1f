"""Who may open which page."""

from __future__ import annotations

import pytest

from iopstui.features.serve.server import (
    PRESENTER,
    VIEWER,
    Access,
    is_loopback,
    is_same_origin,
    new_token,
)
from iopstui.features.serve.viewer_host import MAX_SIZE, MIN_SIZE, valid_size


def test_tokens_are_long_and_unique() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100 and min(map(len, tokens)) >= 32


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.8.9.1"])
def test_roles_by_token(peer: str) -> None:
    access = Access("p" * 32)
    assert access.role("p" * 32, peer) == PRESENTER
    assert access.role(access.viewer, peer) == VIEWER
    for wrong in ("", "p" * 31, "p" * 33, access.viewer[:-1], "\udc80", "é"):
        assert access.role(wrong, peer) is None


@pytest.mark.parametrize("peer", ["192.168.1.7", "10.0.0.1", "::2", "fe80::1%eth0", "", "x"])
def test_the_presenter_is_on_this_machine(peer: str) -> None:
    access = Access("p" * 32)
    assert access.role("p" * 32, peer) is None
    assert access.role(access.viewer, peer) == VIEWER
    assert not is_loopback(peer)


def test_without_a_presenter_an_empty_token_has_no_role() -> None:
    assert Access().role("", "127.0.0.1") is None


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://db1:8000", True), ("https://db1:8000", True), ("http://DB1:8000", True),
        ("http://db1", False), ("http://db1:8001", False), ("http://evil", False),
        ("http://db1:8000.evil", False), ("http://evil/db1:8000", False), ("null", False),
        ("", False),
    ],
)  # fmt: skip
def test_pages_of_other_sites_cannot_connect(origin: str, allowed: bool) -> None:
    assert is_same_origin({"Origin": origin, "Host": "db1:8000"}) is allowed


def test_a_program_without_an_origin_cannot_connect() -> None:
    assert not is_same_origin({"Host": "db1:8000"})


@pytest.mark.parametrize(
    ("requested", "size"),
    [
        ({"width": 80, "height": 24}, (80, 24)), ({"width": "80", "height": "24"}, (80, 24)),
        ({"width": 10**9, "height": 10**9}, MAX_SIZE), ({"width": -1, "height": 0}, MIN_SIZE),
        ({"width": float("inf"), "height": 24}, None), ({"width": "x", "height": 24}, None),
        ({"width": 80}, None), (None, None), ([80, 24], None), ("80x24", None),
    ],
)  # fmt: skip
def test_sizes_are_limited(requested: object, size: tuple[int, int] | None) -> None:
    assert valid_size(requested) == size
