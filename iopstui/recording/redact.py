"""Remove from a recording everything that identifies the machine: host names, addresses, users,
paths, serials, names of processes, cgroups and device-mapper devices."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iopstui.model.answer.answer import Answer
from iopstui.recording.reader import EventRecord, Record, Recording, SampleRecord

REDACTED = "redacted"
PRIVATE = frozenset(
    {"host", "path", "paths", "files", "serial", "dm_name", "backing_file", "mountpoint", "comm",
     "group", "share", "who"}
)  # fmt: skip
"""Fields of recorded objects that are left out completely."""
OPTIONS = (
    "filename", "filename_format", "directory", "opendir", "hostname", "include", "cgroup",
    "read_iolog", "write_iolog", "replay_redirect", "merge_blktrace_file", "write_bw_log",
    "write_lat_log", "write_hist_log", "write_iops_log", "exec_prerun", "exec_postrun",
    "trigger_file", "verify_state_load", "description", "aux_path", "output", "uri", "nfs_url",
    "http_host", "http_user", "http_pass", "http_s3_key", "http_s3_keyid", "http_s3_region",
    "http_s3_security_token", "http_swift_auth_token", "namenode", "serverip", "pool", "cont",
    "rbdname", "clustername", "clientname", "volume", "brick", "program", "arguments", "uid", "gid",
)  # fmt: skip
"""Options of fio whose values are private."""
# values of these fields are iopstui's own words, which reports depend on, and the kernel's device
# names
_OWN_NAMES = frozenset(
    {"kind", "tree", "device", "also", "slaves", "holders", "partitions", "disk", "op", "unit",
     "rule", "field", "fstype", "level", "phase", "layer"}
)  # fmt: skip
_NOT_PRIVATE = frozenset(
    {"", "/", "fio", "iopstui", "localhost", REDACTED, "read", "write", "trim", "rw",
     "readwrite", "mixed", "randread", "randwrite", "randrw", "trimwrite", "data", "test", "file",
     "job", "run", "disk", "device", "total", "host", "hosts"}
)  # fmt: skip
"""Words in private fields that reveal nothing."""
# mount options with names of machines and people
_MOUNT_OPTION = re.compile(
    r"\b((?:client|mount|local)?addr|user(?:name)?|domain|ip|servern|prefixpath|credentials|cred)"
    r"(=)([^,\s]+)"
)
_USER = re.compile(r"/(?:home|Users|export/home|media|run/media|run/user)/([^/\s:,]+)")
# texts that identify a machine or a person, recognised by their form
_TELLING = re.compile(
    r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'`,;)\]}>]+"  # URL
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"  # user and machine
    r"|\b(?:naa|eui|nqn|iqn|t10|uuid)\.[\w.:-]+"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12,64}\b"  # container
    r"|(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}(?![\w:])"
    r"|(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{1,4})*::[0-9a-fA-F:]*(?![\w:])"
    r"|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
)
_OPTION = re.compile(rf"\b({'|'.join(OPTIONS)})(\s*=\s*)[^\n]*")
_PATH = re.compile(r"(?:^|(?<=[\s=\"'(:,\[<`]))~?/[^\s\"'`;,)\]}>]+", re.MULTILINE)
# including all text before it, because a process's name may contain anything
_PROCESS = re.compile(r"[^.;,\n]*\(pid \d+\)")
# names that findings quote: of a cgroup or a program, or a server's address
_NAMES_IN_FINDINGS = (
    (re.compile(r"^.+(?= does (?:\d+ % of the (?:reads|writes) on |all that io\.max ))"), REDACTED),
    (re.compile(r"(?<=it may be )[^(\n]*\(PID \d+[^:\n]*:"), f"{REDACTED} (PID:"),
    (re.compile(r"\[[0-9a-f]*:[0-9a-f:]*\]"), REDACTED),
)
_NAMES_IN_ANSWERS = re.compile(
    r"(?<=[:;] ).+(?= (?:sleeps? in io_uring|waits? for its limit of |waits? in \w|waits?$))"
)
_MAX_NAMES = 5000
TELLING_LENGTH = 6
MAX_HOSTS_LENGTH = 4096


class RedactedRecording(Recording):
    """A recording with "redacted" in place of private words. Raises the same as ``Recording``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._private = Redactor()
            for value in (self.header, *(record.value for _, record in self.index().events)):
                self._private.learn(value)
        except BaseException:
            self.close()
            raise
        self.header = self._private.redacted(self.header)
        self.path = Path(REDACTED)

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Record]:
        """Return records like ``Recording.records``. Samples are numbers, except for the names in
        single requests, which are replaced, too."""
        for record in super().records(start, end):
            if isinstance(record, SampleRecord):
                yield self._without_names(record)
            else:
                yield EventRecord(record.t, self._private.redacted(record.value))

    def _without_names(self, record: SampleRecord) -> SampleRecord:
        raw = record.raw
        if raw.probe is None:
            return record
        self._private.learn(raw.probe.tasks)
        if not raw.probe.exemplars:
            return record
        self._private.learn(raw.probe.exemplars)
        hidden = tuple(map(self._private.redacted, raw.probe.exemplars))
        probe = dataclasses.replace(raw.probe, exemplars=hidden)
        return dataclasses.replace(record, raw=dataclasses.replace(raw, probe=probe))


def opened(path: Path, redact: bool) -> Recording:
    return RedactedRecording(path) if redact else Recording(path)


class Redactor:
    """Collects private words from the fields that have them, and removes them from every text."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, value: Any) -> None:
        """Collect all private words in a recorded value."""
        before = len(self._known)
        if before < _MAX_NAMES:
            names = (name for whole in _private_values(value) for name in _names_in(whole))
            self._known.update(
                name for name in names if name not in _NOT_PRIVATE and not name.isdecimal()
            )
        if len(self._known) > before:
            longest = sorted(self._known, key=lambda name: (-len(name), name))
            pattern = "|".join(map(_name_pattern, longest))
            self._pattern = re.compile(pattern, re.IGNORECASE)

    def redacted(self, value: Any) -> Any:
        """A copy of the value without private words; the types stay the same."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {
                key if str(key).isidentifier() else self.redacted(key): self._field(str(key), item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            if len(value) == 2 and value[0] in OPTIONS:  # (option, value)
                return (value[0], REDACTED)
            parts = [self.redacted(item) for item in value]
            return tuple(parts) if isinstance(value, tuple) else parts
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._data(value)
        return value

    def _data(self, value: Any) -> Any:
        changed = {
            field.name: self._field(field.name, getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
        if isinstance(value, Answer):
            for name in ("text", "reason"):
                names_left_out = _NAMES_IN_ANSWERS.sub(REDACTED, getattr(value, name))
                changed[name] = self._text(names_left_out)
        if changed.get("name") in OPTIONS and "value" in changed:
            changed["value"] = REDACTED
        return dataclasses.replace(value, **changed)

    def _field(self, name: str, value: Any) -> Any:
        if name in _OWN_NAMES or _names_a_figure(name, value):
            return value
        if name in PRIVATE or name in OPTIONS or (name == "job" and "/" in str(value)):
            return _left_out(value)
        return self.redacted(value)

    def _text(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(REDACTED, text)
        for pattern, replacement in _NAMES_IN_FINDINGS:
            text = pattern.sub(replacement, text)
        text = _PROCESS.sub(f"{REDACTED} (pid)", _OPTION.sub(rf"\1\2{REDACTED}", text))
        text = _MOUNT_OPTION.sub(rf"\1\2{REDACTED}", text)
        return _PATH.sub(REDACTED, _TELLING.sub(REDACTED, text))


def _names_a_figure(name: str, value: Any) -> bool:
    """Whether the value names a figure: in an expectation, ``path`` is not a file."""
    return name == "path" and isinstance(value, (list, tuple))


def _name_pattern(name: str) -> str:
    """A pattern that finds a name as a whole word (``_`` ends a word), or anywhere if the name
    can't be part of another word."""
    text = re.escape(name)
    if len(name) >= TELLING_LENGTH and not name.isalpha():
        return text
    return rf"(?<![^\W_]){text}(?![^\W_])"


def _names_in(value: str) -> Iterator[str]:
    """The names in a private value: each host without its port and domain, and the users in
    paths."""
    yield value
    yield from _USER.findall(value)
    if "/" in value or len(value) > MAX_HOSTS_LENGTH:
        return
    for host in value.split(", "):
        yield host
        name = host.partition("@")[2] or host
        name = name.rpartition(":")[0] or name if name.count(":") == 1 else name
        yield from (name, *host.split("@"))
        short, dot, _ = name.partition(".")
        if dot and len(short) > 2 and not short.isdecimal():
            yield short


def _left_out(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_left_out, value))
    return REDACTED if isinstance(value, str) and value else value


def _private_values(value: Any, name: str = "") -> Iterator[str]:
    if _names_a_figure(name, value):
        return
    if isinstance(value, str):
        if name in PRIVATE or name in OPTIONS:
            yield from (value, *value.split(":"))
        yield from (match[3] for match in _MOUNT_OPTION.finditer(value))
        yield from _USER.findall(value)
        for match in _OPTION.finditer(value):
            _, _, assigned = match[0].partition("=")
            yield from (assigned.strip(), *assigned.strip().split(":"))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _private_values(item, str(key))
    elif isinstance(value, (list, tuple)):
        if len(value) == 2 and value[0] in OPTIONS:
            yield from _private_values(value[1], str(value[0]))
        for item in value:
            yield from _private_values(item, name)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _private_values(_fields(value))


def _fields(value: Any) -> Mapping[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
