"""Which class a disk seems to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.catalog import read_catalog
from iopstui.features.promise.model import VisibleFacts, guess_volume

CLASSES = tuple(read_catalog(Path("/nonexistent")).classes.values())
GIB = 1 << 30


@pytest.mark.parametrize(
    ("seen", "provider", "volume"),
    [
        (
            VisibleFacts(model="Amazon Elastic Block Store", serial="vol0abc", size=100 * GIB),
            "aws",
            None,
        ),
        (VisibleFacts(vendor="Amazon EC2", size=8 * GIB), "aws", None),
        (VisibleFacts(vendor="Microsoft Corporation", size=1024 * GIB), "azure", "azure/p30"),
        (
            VisibleFacts(azure_link="/dev/disk/azure/scsi1/lun0", size=512 * GIB),
            "azure",
            "azure/p20",
        ),
        (VisibleFacts(azure_link="/dev/disk/azure/root", size=30 * GIB), "azure", "azure/p4"),
        (VisibleFacts(vendor="Google", model="PersistentDisk", size=GIB), "google", None),
        (VisibleFacts(vendor="Alibaba Cloud", size=40 * GIB), "aliyun", None),
        (
            VisibleFacts(model="SAMSUNG MZQL27T6HBLA-00A07"),
            "drive",
            "drive/samsung-pm9a3-u2-7680gb",
        ),
        (VisibleFacts(vendor="Dell Inc.", model="ST4000", serial="x"), "", None),
        (VisibleFacts(), "", None),
    ],
)
def test_guess(seen: VisibleFacts, provider: str, volume: str | None) -> None:
    found = guess_volume(seen, CLASSES)
    assert (found.provider, found.volume.id if found.volume else None) == (provider, volume)
    assert bool(found.why) == bool(provider)
    assert found.size_gib == (seen.size / GIB if seen.size else None)
