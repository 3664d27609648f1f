"""Rules on what an NVMe drive reports about itself: throttling, wear, media errors, write
amplification (SMART), and the limits of an AWS volume (log page D0h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import ENOUGH_SECONDS, Evidence, recent_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.aws import LIMITS, VolumeGrowth, most_exceeded
from iopstui.model.metrics.nvme import UNIT_BYTES, amplification, counter_growth, media_written
from iopstui.model.samples import DriveReading

MUCH_AMPLIFICATION = 3.0
DAY_S = 86_400
_ZERO_CELSIUS_KELVIN = 273
# bits of the critical warning (Base Specification 2.0, figure 207); temperature is another finding
_WARNINGS = (
    (0, "its spare blocks are below the threshold"),
    (2, "its reliability is degraded"),
    (3, "it is read-only"),
    (4, "its backup of volatile memory has failed"),
)


def drive_throttling(evidence: Evidence) -> Finding | None:
    """A drive that slowed itself down, or was too hot, since the run began."""
    for name, reading in evidence.drives.items():
        parts = [*_throttling_texts(reading)]
        if not parts:
            continue
        kelvin = reading.counts.get("kelvin")
        now = "" if kelvin is None else f"; it is at {kelvin - _ZERO_CELSIUS_KELVIN} °C now"
        return Finding(
            "thermal",
            f"{name} {' and '.join(parts)} since the run began (SMART){now}: do not compare the "
            "seconds before with those after",
            advise("cool"),
            disk=_namespace(name, evidence),
        )
    return None


def _namespace(controller: str, evidence: Evidence) -> str:
    """The measured disk that belongs to this controller; "" if none or several do."""
    names = [device.name for device in evidence.tree if device.name.startswith(f"{controller}n")]
    return names[0] if len(names) == 1 else ""


def _throttling_texts(reading: DriveReading) -> Iterator[str]:
    for level, adverb in ((1, "lightly"), (2, "heavily")):
        times, seconds = (
            counter_growth(reading, f"thermal_{level}"),
            counter_growth(reading, f"thermal_{level}_s"),
        )
        if times or seconds:
            yield f"throttled itself {adverb} ({times or 0} times, {seconds or 0} s)"
    for kind in ("warning", "critical"):
        minutes = counter_growth(reading, f"{kind}_min")
        if minutes:
            yield f"was above its {kind} temperature for {minutes} min"


def media_errors(evidence: Evidence) -> Finding | None:
    """Data that a drive could not read, or read back wrong, since the run began."""
    for name, reading in evidence.drives.items():
        more = counter_growth(reading, "media_errors")
        if more:
            return Finding(
                "media-errors",
                f"{name} counted {units.counted(more, 'media error')} since the run began, "
                f"{reading.counts['media_errors']:,} in its life (SMART): data could not be read, "
                "or was wrong",
                advise("error-log", name),
                disk=_namespace(name, evidence),
            )
    return None


def drive_wear(evidence: Evidence) -> Finding | None:
    """A drive that warns of its own failure, or has used up its rated endurance."""
    # what one warns of says more than another's endurance
    first = sorted(evidence.drives.items(), key=lambda drive: not _warnings(drive[1]))
    for name, reading in first:
        parts = [*_wear_texts(reading)]
        if parts:
            warnings = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
            return Finding(
                "wear",
                f"{name}: {warnings} (SMART): its performance may not be that of a healthy drive",
                advise("health", name),
                disk=_namespace(name, evidence),
            )
    return None


def _wear_texts(reading: DriveReading) -> Iterator[str]:
    counts = reading.counts
    yield from _warnings(reading)
    if counts.get("used", 0) >= 100:
        yield f"{counts['used']} % of its rated endurance is used"


def _warnings(reading: DriveReading) -> list[str]:
    counts = reading.counts
    warning = counts.get("critical_warning", 0)
    texts = [text for bit, text in _WARNINGS if warning & 1 << bit]
    spare, least = counts.get("spare"), counts.get("spare_threshold")
    if spare is not None and least is not None and spare < least and not warning & 1:
        texts.append(f"{spare} % of its spare blocks are left, its threshold is {least} %")
    return texts


def write_amplification(evidence: Evidence) -> Finding | None:
    """A drive that writes much more than the hosts do."""
    for name, reading in evidence.drives.items():
        factor = amplification(reading)
        if factor is None or factor < MUCH_AMPLIFICATION:
            continue
        host = counter_growth(reading, "units_written", UNIT_BYTES)
        return Finding(
            "amplification",
            f"{name} wrote {units.size(media_written(reading))} to its media for "
            f"{units.size(host)} from the hosts: write amplification {factor:.1f}"
            f"{_writes_per_day_text(evidence, reading)}",
            advise("amplification"),
            disk=_namespace(name, evidence),
        )
    return None


def volume_limit(evidence: Evidence) -> Finding | None:
    """An AWS volume whose own counters show that the demand exceeded a limit in each of the last
    seconds."""
    frames = recent_frames(evidence)
    for disk in (frames[-1].aws or {}) if len(frames) >= ENOUGH_SECONDS else ():
        volumes = [frame.aws[disk] for frame in frames if frame.aws and disk in frame.aws]
        exceeded = most_exceeded(volumes) if len(volumes) == len(frames) else {}
        if exceeded:
            return Finding(
                "volume-limit",
                f"for {_exceeded_text(exceeded)} ({disk}, in each of the last "
                f"{len(frames)} s, by its own count){_others_text(exceeded, volumes)}",
                advise("volume-limit" if any(limit.startswith("volume") for limit in exceeded)
                       else "instance-limit"),
                disk=disk,
            )  # fmt: skip
    return None


def _exceeded_text(exceeded: Mapping[str, float]) -> str:
    return " and for ".join(
        f"at least {ms:.0f} ms of each second the demand exceeded the {LIMITS[limit]}"
        for limit, ms in exceeded.items()
    )


def _others_text(exceeded: Mapping[str, float], volumes: Sequence[VolumeGrowth]) -> str:
    """Say that the volume's own limits were not exceeded at all, if that is so; else ""."""
    own = [limit for limit in LIMITS if limit.startswith("volume")]
    if any(limit in exceeded for limit in own):
        return ""
    if any(volume.exceeded_ms.get(limit) for volume in volumes for limit in own):
        return ""
    return ", not the volume's own limits"


def _writes_per_day_text(evidence: Evidence, reading: DriveReading) -> str:
    """How many times a day this rate fills the whole drive, in words; "" if its rate or size is
    unknown."""
    rates = [frame.total.w_bytes_s for frame in recent_frames(evidence) if frame.total is not None]
    measured = [rate for rate in rates if rate is not None]
    capacity = reading.counts.get("capacity")
    if not measured or not capacity or len(evidence.drives) > 1:
        return ""
    per_day = sum(measured) / len(measured) * DAY_S / capacity
    return f"; at this rate hosts write the drive {per_day:.1f} times a day"
