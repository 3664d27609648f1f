"""A finding: a rule's sentence with its numbers, its advice and its seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.advice import NO_ADVICE, Advice


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` names what fired, ``text`` is the sentence, ``advice`` what to try ("" if nothing
    helps), ``key`` the key that does it ("" if none). ``test`` are the options of a run that
    decides whether it is true (empty: none does). ``since`` and ``until`` are the seconds of the
    session that it is about (``None``: none, or an older recording). ``disk`` is the disk that it
    is about ("": several, or not given)."""

    rule: str
    text: str
    advice: Advice = NO_ADVICE
    key: str = ""
    test: tuple[tuple[str, str], ...] = ()
    since: float | None = None
    until: float | None = None
    disk: str = ""

    @property
    def options(self) -> str:
        """The options of ``test`` in words: "bs=8k"; "" if it has none."""
        return " ".join(f"{name}={value}" for name, value in self.test)


def period_text(finding: Finding) -> str:
    """The seconds that a finding is about: "0:05-0:08"; "" if none."""
    if finding.since is None or finding.until is None:
        return ""
    return f"{units.clock(finding.since)}-{units.clock(finding.until)}"


def end_text(since: float, until: float, why: str = "") -> str:
    """When a finding's cause ended, and how long it lasted: "ended at 0:36, after 24 s". A finding
    that later seconds contradict is "withdrawn: vda counts its I/Os all the same"."""
    if why:
        return f"withdrawn: {why}"
    return f"ended at {units.clock(until)}, after {units.duration(until - since)}"


def device_names_text(devices: Sequence[BlockDevice], most: int = 4) -> str:
    """ "vda", "vda and vdb", "vda, vdb, vdc and 5 more"."""
    names = [device.name for device in devices]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def cpus_text(cpus: Sequence[int], most: int = 6) -> str:
    """ "CPU 0, 1, 5", with long lists cut: "CPU 0, 1, 2 ... (64 CPUs)"."""
    listed = ", ".join(map(str, cpus[:most]))
    return f"CPU {listed}" + (f" ... ({len(cpus)} CPUs)" if len(cpus) > most else "")
