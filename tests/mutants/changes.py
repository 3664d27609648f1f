"""The changes that mutmut makes, and a random sample of them.

mutmut's own runner changes only functions without decorators: no constant of a module, no property.
These are half of the code that matters here, so its operators are used without its runner."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode


@dataclass(frozen=True)
class Change:
    """One changed file."""

    path: Path
    before: str
    after: str

    @property
    def lines(self) -> set[int]:
        """Numbers of the changed lines in the earlier file, from 1."""
        matcher = difflib.SequenceMatcher(
            None, self.before.splitlines(), self.after.splitlines(), autojunk=False
        )
        line_numbers: set[int] = set()
        for tag, start, end, _, _ in matcher.get_opcodes():
            if tag != "equal":
                line_numbers.update(range(start + 1, max(end, start + 1) + 1))
        return line_numbers

    @property
    def diff(self) -> str:
        """The changed lines with one line of context."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), lineterm="", n=1
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


class _Visitor(MutationVisitor):
    """mutmut's visitor, but also for decorated functions, because here no copies are put beside
    them."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False
        return super()._skip_node_and_children(node)


def sample(root: Path, paths: Sequence[Path], count: int, seed: int) -> list[Change]:
    """``count`` different changes: each at a random place of the code, and there a random one of
    the possible changes."""
    chance = random.Random(seed)
    places = [(path, module, place) for path in paths for module, place in _places(root / path)]
    chance.shuffle(places)
    changes: list[Change] = []
    for path, module, place in places:
        if len(changes) == count:
            break
        change = chance.choice(place)
        after = module.deep_replace(change.original_node, change.mutated_node).code  # type: ignore[arg-type]
        if after != module.code and _compiles(after):
            changes.append(Change(path, module.code, after))
    return changes


def _places(path: Path) -> Iterator[tuple[cst.Module, list[Mutation]]]:
    # without a copy, because a newly parsed module has no node twice
    wrapper = MetadataWrapper(cst.parse_module(path.read_text()), unsafe_skip_copy=True)
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = wrapper.visit(visitor)
    by_node: dict[int, list[Mutation]] = {}
    for mutation in visitor.mutations:
        if not _only_wording(mutation.original_node):
            by_node.setdefault(id(mutation.original_node), []).append(mutation)
    for place in by_node.values():
        yield module, place


def _only_wording(node: cst.CSTNode) -> bool:
    """Whether it is a sentence for people. A text without blanks is a key, a file name or an
    option."""
    return isinstance(node, cst.SimpleString) and " " in node.value


def _compiles(code: str) -> bool:
    try:
        compile(code, "changed", "exec")
    except SyntaxError:
        return False
    return True
