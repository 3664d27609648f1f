"""Dictionaries that are built on first access."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LazyDict(Mapping[K, V]):
    """A dictionary that ``make`` computes when it is first needed (twice if two threads need it at
    the same time, so ``make`` must always return the same). ``keys_of`` returns its keys, each once
    and in order, at a lower cost, or ``None`` if only ``make`` can tell. It is equal to a
    dictionary with the same items."""

    __slots__ = ("_built", "_keys", "_make", "_read_keys")

    def __init__(
        self,
        make: Callable[[], dict[K, V]],
        keys_of: Callable[[], Collection[K] | None] | None = None,
    ) -> None:
        self._make: Callable[[], dict[K, V]] | None = make
        self._read_keys = keys_of
        self._built: dict[K, V] | None = None
        self._keys: Collection[K] | None = None

    def full(self) -> dict[K, V]:
        """The whole dictionary. Callers must not change it."""
        make, built = self._make, self._built
        # store the result before releasing its source: another thread may be reading
        if built is None and make is not None:
            built = self._built = make()
            self._make = self._read_keys = None
        return {} if built is None else built

    def _known_keys(self) -> Collection[K]:
        if self._keys is None:
            keys_of = self._read_keys
            keys = keys_of() if keys_of is not None else None
            self._keys = self.full().keys() if keys is None else keys
        return self._keys

    def __getitem__(self, key: K) -> V:
        return self.full()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._known_keys())

    def __len__(self) -> int:
        return len(self._known_keys())

    def __repr__(self) -> str:
        return repr(self.full())

    def keys(self) -> KeysView[K]:
        return self.full().keys()

    def values(self) -> ValuesView[V]:
        return self.full().values()

    def items(self) -> ItemsView[K, V]:
        return self.full().items()
