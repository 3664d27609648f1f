"""Describe a DISKSPD command and its translation to people."""

from __future__ import annotations

from iopstui.features.diskspd.translation import Translation
from iopstui.format import size
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.text import printable


def translation_lines(
    translation: Translation, is_given: bool, size_option: str | None
) -> list[str]:
    """The job, what was left out, and what replaces the files named: a TARGET if one is
    given, else a scratch file of ``size_option`` (--size)."""
    lines = ["iopstui: as a fio job:", ""]
    lines += [f"    {printable(line)}".rstrip() for line in translation.text.splitlines()]
    lines.append("")
    lines += [f"iopstui: {printable(note)}" for note in translation.notes]
    names = printable(", ".join(translation.targets))
    file_size = translation.file_size
    if is_given:
        lines.append(f"iopstui: TARGET replaces {names}")
    elif file_size is not None:
        of = f" of {printable(size_option)} (--size)" if size_option is not None else ""
        lines.append(f"iopstui: a scratch file{of} replaces {names}; removed at the end")
    if file_size is not None and size_option is None and file_size > DEFAULT_BYTES:
        lines.append(
            f"iopstui: -c asks for {size(file_size)}; a scratch file has "
            f"{size(DEFAULT_BYTES)} at most, unless --size {file_size >> 20}m is given"
        )
    return lines
