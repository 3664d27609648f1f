"""Describe a DISKSPD command and its translation to people."""

from __future__ import annotations

from iopstui.format import size
from iopstui.model.fio.diskspd import Translation
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.text import printable


def translation_lines(found: Translation, given: bool, wanted: str | None) -> list[str]:
    """The job, what was left out, and what replaces the files named: a TARGET if one is
    ``given``, else a scratch file, ``wanted`` (--size) so large."""
    lines = ["iopstui: as a fio job:", ""]
    lines += [f"    {printable(line)}".rstrip() for line in found.text.splitlines()]
    lines.append("")
    lines += [f"iopstui: {printable(note)}" for note in found.notes]
    names = printable(", ".join(found.targets))
    if given:
        lines.append(f"iopstui: TARGET replaces {names}")
    elif found.creates is not None:
        of = f" of {printable(wanted)} (--size)" if wanted is not None else ""
        lines.append(f"iopstui: a scratch file{of} replaces {names}; removed at the end")
    if found.creates is not None and wanted is None and found.creates > DEFAULT_BYTES:
        lines.append(
            f"iopstui: -c asks for {size(found.creates)}; a scratch file has {size(DEFAULT_BYTES)}"
            f" at most, unless --size {found.creates >> 20}m is given"
        )
    return lines
