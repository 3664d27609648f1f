"""Load the volume classes shipped with iopstui and the user's own; find one by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.fio.library import shipped_directory
from iopstui.linux.process.private import read_trusted
from iopstui.model.volumes.schema import parse_provider
from iopstui.model.volumes.volume import Instance, Provider, VolumeClass
from iopstui.untrusted import parse_toml

SUFFIX = ".toml"
MAX_BYTES = 1 << 20
LIST_HINT = "List: iopstui volumes"


@dataclass(frozen=True, slots=True)
class Catalog:
    """All classes and instances by their ids. ``problems`` are sentences about the user's files
    that could not be used."""

    classes: Mapping[str, VolumeClass] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def volume(self, name: str) -> VolumeClass:
        """The class with that id, or with a name or drive that only one has. Raises UsageError."""
        key = name.strip().lower()
        for volume in self.classes.values():
            if key in (volume.id.lower(), volume.drive.lower()):
                return volume
        matches = [volume for volume in self.classes.values() if volume.name.lower() == key]
        if len(matches) == 1:
            return matches[0]
        ids = [
            text for volume in self.classes.values() for text in (volume.id, volume.drive) if text
        ]
        raise UsageError(f"No volume class is called {name!r}.", self._suggestion(name, ids))

    def instance(self, name: str) -> Instance:
        """The instance with that id, or with a name that only one provider has. Raises
        UsageError."""
        key = name.strip().lower()
        matches = [instance for instance in self.instances.values()
                   if key in (instance.id.lower(), instance.name.lower())]  # fmt: skip
        if len(matches) == 1:
            return matches[0]
        raise UsageError(
            f"No instance size is called {name!r}.",
            self._suggestion(name, self.instances).replace("volumes", "volumes --instances"),
        )

    def select_provider(self, name: str) -> Catalog:
        """The classes and instances of one provider; empty if there is no provider of that name."""
        start = f"{name.strip().lower()}/"
        return replace(
            self,
            classes={
                key: volume for key, volume in self.classes.items() if key.lower().startswith(start)
            },
            instances={
                key: instance
                for key, instance in self.instances.items()
                if key.lower().startswith(start)
            },
        )

    def find_instances(self, text: str) -> list[Instance]:
        """The instances whose id or name begins with ``text`` ("aws", "m5.", "azure/Standard_D").
        Raises UsageError if there is none."""
        start = text.strip().lower()
        matches = [
            instance
            for instance in self.instances.values()
            if instance.id.lower().startswith(start) or instance.name.lower().startswith(start)
        ]
        return matches or [self.instance(text)]

    def _suggestion(self, name: str, names: Iterable[str]) -> str:
        ids = {id_.lower(): id_ for id_ in names}
        ids |= {id_.rpartition("/")[2].lower(): id_ for id_ in ids.values()}
        lowered = name.strip().lower()
        matches = difflib.get_close_matches(lowered, ids, n=3, cutoff=0.6)
        matches = matches or [key for key in ids if lowered and key.startswith(lowered)][:3]
        suggestions = dict.fromkeys(ids[key] for key in matches)
        unused = f" {self.problems[0]}" if self.problems else ""
        return (
            (f"Did you mean {' or '.join(suggestions)}? " if suggestions else "")
            + LIST_HINT
            + unused
        )


def user_directory(name: str = "volumes") -> Path | None:
    """$XDG_CONFIG_HOME/iopstui/``name``, or below ~/.config; ``None`` without a home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "iopstui" / name if os.path.isabs(base) else None


def read_catalog(directory: Path | None = None) -> Catalog:
    """Read the shipped files and the user's in ``directory`` (default: ``user_directory``). The
    user's entries win. Raises Missing if the shipped ones are not there."""
    shipped = sorted(shipped_directory("volumes", "file of volumes").glob(f"*{SUFFIX}"))
    providers = [load_provider(path)[0] for path in shipped]
    directory = user_directory() if directory is None else directory
    problems: list[str] = []
    for path in (
        sorted(directory.glob(f"*{SUFFIX}")) if directory is not None and directory.is_dir() else ()
    ):
        try:
            provider, mistakes = load_provider(path)
        except UsageError as error:
            problems.append(error.message)
            continue
        if mistakes:
            more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
            problems.append(f"{path} is not used: {mistakes[0]}{more}.")
        else:
            providers.append(provider)
    return Catalog(
        {volume.id: volume for provider in providers for volume in provider.classes},
        {instance.id: instance for provider in providers for instance in provider.instances},
        {provider.name: provider.title for provider in providers},
        tuple(problems),
    )


def load_provider(path: Path) -> tuple[Provider, list[str]]:
    """Load a file. Returns its provider, and what is wrong with its entries. Raises UsageError if
    it can't be read at all."""
    data = read_toml(path, _is_shipped(path))
    return parse_provider(data, path.name.removesuffix(SUFFIX))


def read_toml(path: Path, is_shipped: bool) -> dict[str, Any]:
    """Read a file into its tables. Raises UsageError if it can't be read."""
    try:
        # do not trust another user's file: it would decide what a run as root writes, and for how
        # long
        return parse_toml(read_trusted(path, MAX_BYTES, anyones=is_shipped))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not used: it is not UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} is not used: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not used: it is not TOML: {error}.") from None


def _is_shipped(path: Path) -> bool:
    shipped = shipped_directory("volumes", "file of volumes")
    return path.parent.resolve() == shipped.resolve()
