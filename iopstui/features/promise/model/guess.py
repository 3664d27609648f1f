"""Guess a device's volume class from local facts, without asking the cloud."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from iopstui.model.volumes.volume import VolumeClass

AWS, AZURE, GOOGLE, ALIYUN = "aws", "azure", "google", "aliyun"
_VENDORS = {
    "amazon ec2": AWS, "microsoft corporation": AZURE, "google": GOOGLE,
    "alibaba cloud": ALIYUN, "kingsoft": "ksyun",
}  # fmt: skip
_MODELS = {
    "amazon elastic block store": AWS, "alibaba cloud elastic block storage": ALIYUN,
    "nvme_card-pd": GOOGLE, "persistentdisk": GOOGLE, "msft nvme accelerator": AZURE,
}  # fmt: skip
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class VisibleFacts:
    """The visible properties of the machine and of one disk; "" if there is none."""

    vendor: str = ""
    model: str = ""
    serial: str = ""
    size: int | None = None
    azure_link: str = ""
    """The link below /dev/disk/azure that leads to the disk."""
    product: str = ""
    """DMI's product name; on Amazon's newer machines it is the instance size."""


@dataclass(frozen=True, slots=True)
class VolumeGuess:
    """A guess: the ``provider`` ("" if unknown), the volume class (``None`` if several fit), the
    size in GiB, and ``why``, for people."""

    provider: str = ""
    volume: VolumeClass | None = None
    size_gib: float | None = None
    why: str = ""


def guess_volume(facts: VisibleFacts, classes: Iterable[VolumeClass]) -> VolumeGuess:
    """Guess the volume class of the disk; the user must confirm it."""
    size = facts.size / _GIB if facts.size else None
    known_classes = list(classes)
    model = facts.model.strip()
    for volume in known_classes:
        if any(fnmatch.fnmatchcase(model.upper(), pattern.upper()) for pattern in volume.models):
            return VolumeGuess(volume.provider, volume, size, f"the disk's model is {model}")
    provider, why = _guess_provider(facts, model)
    if not provider:
        return VolumeGuess(size_gib=size)
    fixed = [v for v in known_classes if v.provider == provider and v.fixed_size]
    fits = [v for v in fixed if size and v.sizes and v.sizes[0] < size <= v.sizes[1]]
    # a size does not identify the class if other classes have it, too
    return VolumeGuess(
        provider, fits[0] if provider == AZURE and len(fits) == 1 else None, size, why
    )


def _guess_provider(facts: VisibleFacts, model: str) -> tuple[str, str]:
    for text, provider in _MODELS.items():
        if model.lower().startswith(text):
            return provider, f"the disk's model is {model}"
    if facts.azure_link:
        return AZURE, f"{facts.azure_link} is this disk"
    for text, provider in _VENDORS.items():
        if facts.vendor.lower().startswith(text):
            return provider, f"the machine's vendor is {facts.vendor}"
    if facts.serial.lower().startswith("vol-"):
        return AWS, f"the disk's serial number is {facts.serial}"
    return "", ""
