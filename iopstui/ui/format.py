"""Numbers as a tired reader takes them in: three digits and a unit, never wider than six."""

from __future__ import annotations

NOTHING = "·"
"""Shown where there was nothing to measure in this second; every panel says so."""

_LATENCY_UNITS = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_COUNT_UNITS = ("", "k", "M", "G", "T")
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def three(value: float) -> str:
    """Three significant digits for 0 <= value < 999.5: "1.29", "12.3", "812"."""
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def count(value: float | None) -> str:
    """A rate: "0", "3.2", "812", "45.6k", "1.02M". Five characters at most."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if value < 9.95:
        return f"{value:.1f}"
    if value < 999.5:
        return f"{value:.0f}"
    for unit in _COUNT_UNITS[1:]:
        value /= 1000
        if value < 999.5:
            return f"{three(value)}{unit}"
    return f">1{_COUNT_UNITS[-1]}"


def whole(value: int | None) -> str:
    """A plain count: "0", "7", "1.02k"."""
    return str(value) if value is not None and value < 1000 else count(value)


def axis_count(value: float) -> str:
    """A round number beside an axis: "0", "50k", "2.5M"."""
    return _bare(count(value))


def axis_latency(ns: float) -> str:
    """A round time beside an axis: "500 µs", "2 ms"."""
    return _bare(latency(ns, " "))


def _bare(text: str) -> str:
    """Without zeros behind the point, which a round number does not need."""
    number = text.rstrip("nµmskMGT ")
    if "." not in number:
        return text
    return number.rstrip("0").rstrip(".") + text[len(number) :]


def mebibytes(value: float | None) -> str:
    """Bytes (per second) as a number of MiB: "0", "0.05", "178", "1.02k"."""
    if value is None:
        return NOTHING
    mib = value / (1 << 20)
    if mib == 0:
        return "0"
    return three(mib) if mib < 999.5 else count(mib)


def latency(ns: float | None, space: str = "") -> str:
    """Nanoseconds as "812ns", "12.3µs", "1.29ms", "17.1s". ``space`` goes before the unit."""
    if ns is None:
        return NOTHING
    if ns == 0:
        return "0"
    for factor, unit in _LATENCY_UNITS:
        if ns / factor < 999.5:
            number = f"{ns:.0f}" if unit == "ns" else three(ns / factor)
            return f"{number}{space}{unit}"
    return f"{ns / 1e9:.0f}{space}s"


def milliseconds(ms: float | None) -> str:
    """Milliseconds, in the units of ``latency`` so that both can be compared at a glance."""
    return NOTHING if ms is None else latency(ms * 1e6)


def percent(value: float | None) -> str:
    """ "0", "3.2", "100"."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def size(value: int | None) -> str:
    """Bytes as "256 GiB"; whole numbers stay whole."""
    if value is None:
        return "size unknown"
    number = float(value)
    for unit in _SIZE_UNITS:
        if number < 1024 or unit == _SIZE_UNITS[-1]:
            text = f"{number:.0f}" if number == int(number) or number >= 100 else f"{number:.1f}"
            return f"{text} {unit}"
        number /= 1024
    raise AssertionError("unreachable")


def clock(seconds: float | None) -> str:
    """Seconds as "00:12", "1:02:03"."""
    if seconds is None:
        return "--:--"
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes:02}:{left:02}"


def cpu_list(cpus: tuple[int, ...]) -> str:
    """(0, 1, 2, 5) -> "0-2,5"."""
    parts: list[str] = []
    ordered = sorted(cpus)
    start = 0
    for index, cpu in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != cpu + 1:
            first = ordered[start]
            parts.append(str(cpu) if first == cpu else f"{first}-{cpu}")
            start = index + 1
    return ",".join(parts)
