"""Which fence is used."""

from __future__ import annotations

import subprocess

import pytest

from iopstui.fio import fence
from iopstui.fio.fence import LANDLOCK, NAMESPACE, NONE, fence_kind


@pytest.mark.parametrize(
    ("abi", "said", "kind"),
    [(1, b"", LANDLOCK), (0, b"namespace 0\n", NAMESPACE), (0, b"none 0\n", NONE), (0, b"", NONE)],
)
def test_landlock_first_then_what_a_child_could_put_up(
    monkeypatch: pytest.MonkeyPatch, abi: int, said: bytes, kind: str
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **more: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, said, b"")

    monkeypatch.setattr(fence.fence_exec, "landlock_abi", lambda: abi)
    monkeypatch.setattr(fence.subprocess, "run", run)
    fence_kind.cache_clear()
    assert fence_kind() == fence_kind() == kind
    fence_kind.cache_clear()
    program = [fence.fence_exec.__file__, "--kind"]
    assert [command[-2:] for command in asked] == ([] if abi else [program])
