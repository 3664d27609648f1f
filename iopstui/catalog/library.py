"""Load the volume classes shipped with iopstui and the user's own; find one by name."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.fio.shipped_files import shipped_directory
from iopstui.linux.process.private import read_trusted
from iopstui.model.volumes.schema import parse_provider
from iopstui.model.volumes.volume import Instance, Provider, VolumeClass

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIX = ".toml"
LARGEST = 1 << 20
LISTING = "List: iopstui volumes"


@dataclass(frozen=True, slots=True)
class Catalog:
    """All classes and instances by their ids. ``problems`` are sentences about the user's files
    that could not be used."""

    classes: Mapping[str, VolumeClass] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def volume(self, name: str) -> VolumeClass:
        """The class of that id, or of a name or drive that only one has. UsageError."""
        wanted = name.strip().lower()
        for one in self.classes.values():
            if wanted in (one.id.lower(), one.drive.lower()):
                return one
        found = [one for one in self.classes.values() if one.name.lower() == wanted]
        if len(found) == 1:
            return found[0]
        known = [text for one in self.classes.values() for text in (one.id, one.drive) if text]
        raise UsageError(f"No volume class is called {name!r}.", self._advice(name, known))

    def instance(self, name: str) -> Instance:
        """The instance of that id, or of a name that only one provider has. UsageError."""
        wanted = name.strip().lower()
        found = [one for one in self.instances.values()
                 if wanted in (one.id.lower(), one.name.lower())]  # fmt: skip
        if len(found) == 1:
            return found[0]
        raise UsageError(
            f"No instance size is called {name!r}.",
            self._advice(name, self.instances).replace("volumes", "volumes --instances"),
        )

    def select_provider(self, name: str) -> Catalog:
        """The classes and instances of one provider; empty if none is called so."""
        start = f"{name.strip().lower()}/"
        return replace(
            self,
            classes={
                key: one for key, one in self.classes.items() if key.lower().startswith(start)
            },
            instances={
                key: one for key, one in self.instances.items() if key.lower().startswith(start)
            },
        )

    def instances_like(self, text: str) -> list[Instance]:
        """The instances whose id or name begins like this ("aws", "m5.", "azure/Standard_D").
        UsageError if there is none."""
        start = text.strip().lower()
        found = [one for one in self.instances.values()
                 if one.id.lower().startswith(start) or one.name.lower().startswith(start)
                 ]  # fmt: skip
        return found or [self.instance(text)]

    def _advice(self, name: str, known: Iterable[str]) -> str:
        ids = {one.lower(): one for one in known}
        ids |= {one.rpartition("/")[2].lower(): one for one in ids.values()}
        wanted = name.strip().lower()
        near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.6)
        near = near or [key for key in ids if wanted and key.startswith(wanted)][:3]
        meant = dict.fromkeys(ids[one] for one in near)
        unused = f" {self.problems[0]}" if self.problems else ""
        return (f"Did you mean {' or '.join(meant)}? " if meant else "") + LISTING + unused


def user_directory() -> Path | None:
    """$XDG_CONFIG_HOME/iopstui/volumes, or below ~/.config; ``None`` without a home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "iopstui" / "volumes" if os.path.isabs(base) else None


def read_catalog(own: Path | None = None) -> Catalog:
    """The shipped files and those of the user (``own``: another directory than his). The user's
    entries win. Missing where the shipped ones are not there."""
    shipped = sorted(shipped_directory("volumes", "file of volumes").glob(f"*{SUFFIX}"))
    providers = [load_provider(path)[0] for path in shipped]
    own = user_directory() if own is None else own
    problems: list[str] = []
    for path in sorted(own.glob(f"*{SUFFIX}")) if own is not None and own.is_dir() else ():
        try:
            provider, wrong = load_provider(path)
        except UsageError as error:
            problems.append(error.message)
            continue
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            problems.append(f"{path} is not used: {wrong[0]}{more}.")
        else:
            providers.append(provider)
    return Catalog(
        {one.id: one for provider in providers for one in provider.classes},
        {one.id: one for provider in providers for one in provider.instances},
        {provider.name: provider.title for provider in providers},
        tuple(problems),
    )


def load_provider(path: Path) -> tuple[Provider, list[str]]:
    """A file, and what is wrong with its entries. UsageError if it can't be read at all."""
    try:
        # another user's file decides what a run as root writes and for how long
        text = read_trusted(path, LARGEST, anyones=_is_shipped(path))
        data: dict[str, Any] = tomllib.loads(text)
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not used: it is not UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} is not used: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not used: it is not TOML: {error}.") from None
    return parse_provider(data, path.name.removesuffix(SUFFIX))


def _is_shipped(path: Path) -> bool:
    shipped = shipped_directory("volumes", "file of volumes")
    return path.parent.resolve() == shipped.resolve()
