"""The program's source, parsed once for all tests of a process that read it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "iopstui"


class Parsed:
    """A module, with its nodes by their kind, each kind in the order of ``ast.walk``."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._nodes: dict[type, list[ast.AST]] = defaultdict(list)
        for node in ast.walk(self.tree):
            self._nodes[type(node)].append(node)

    def nodes(self, *kinds: type[ast.AST]) -> Iterable[ast.AST]:
        for kind in kinds:
            yield from self._nodes.get(kind, ())


@cache
def modules() -> dict[Path, Parsed]:
    return {path: Parsed(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
