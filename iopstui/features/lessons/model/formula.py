"""Formulas over measured figures, and the names that they can use.

A formula may contain numbers, names ("deep.iops"), + - * /, comparisons, and/or/not, abs, min, max
and known, but nothing else, so a lesson file can do no harm. A figure that was not measured makes
the result unknown (``None``), never an error. ``and`` and ``or`` still have a result if their other
parts suffice.

For a run named ``deep`` there are ``deep.iops`` and all other names in ``RUN``, and
``deep.fio.PATH`` for any value in the first row of fio's own final report
(``deep.fio.read.clat_ns.stddev``). Facts are in ``FACTS``."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from iopstui.model.experiment.point import POINT, Point
from iopstui.model.findings.evidence import JobShape

MAX_LENGTH = 500
Value = float | str | bool
Lookup = Callable[[str], "Value | None"]

# units for literals, because figures are in ns, bytes and plain counts
CONSTANTS: Mapping[str, Value] = {
    "true": True, "false": False,
    "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
    "k": 1e3, "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3,
}  # fmt: skip
_MATH: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_VARIADIC: Mapping[str, Callable[..., float]] = {"min": min, "max": max}
FUNCTIONS = ("abs", "known", *_VARIADIC)


class FormulaError(ValueError):
    """A mistake in a formula, described in words."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula. ``text`` is the source; ``names`` are all figures that it uses."""

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(repr=False, compare=False)

    @property
    def name(self) -> str | None:
        """The figure's name, if the formula consists only of it; else ``None``."""
        return _dotted_name(self._tree)

    def value(self, lookup: Lookup) -> Value | None:
        """The result, with the figures' values from ``lookup``; ``None`` if it is unknown."""
        return _evaluate(self._tree, lookup)

    def as_boolean(self, lookup: Lookup) -> bool | None:
        """The result as True, False or ``None`` (unknown); a number also counts as unknown."""
        value = self.value(lookup)
        return value if isinstance(value, bool) else None


def parse_formula(text: str) -> Formula:
    """Parse a formula. Raises FormulaError for anything else."""
    bare = " ".join(text.split())
    if not bare:
        raise FormulaError("the formula is empty")
    if len(bare) > MAX_LENGTH:
        raise FormulaError(f"the formula is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(bare, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"{bare!r} is not a formula: {_syntax_problem(bare, error)}") from None
    try:
        names = frozenset(_names(tree, bare))
    except RecursionError:
        raise FormulaError(f"{bare[:40]!r}... is nested too deeply") from None
    return Formula(bare, names, tree)


def _syntax_problem(text: str, error: Exception) -> str:
    if re.search(r"(?<![<>=!])=(?!=)", text):
        return "equal is written =="
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return message or "it can't be read"


def _names(node: ast.expr, text: str) -> Iterator[str]:
    """All figures that the formula uses. Raises FormulaError for anything that the language does
    not have."""
    if isinstance(node, ast.Constant):
        _check_constant(node, text)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = _dotted_name(node)
        if name is None:
            raise FormulaError(f"{text!r}: only names can have a dot after them")
        if name in FUNCTIONS:
            raise FormulaError(f"{text!r}: {name} needs its arguments in ( )")
        if name not in CONSTANTS:
            yield name
    else:
        for part in _operands(node, text):
            yield from _names(part, text)


def _operands(node: ast.expr, text: str) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in _MATH:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd, ast.Not)):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Compare):
        for op in node.ops:
            if type(op) not in _ORDER and not isinstance(op, (ast.Eq, ast.NotEq)):
                raise FormulaError(f"{text!r}: compare with < <= > >= == !=")
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        return _arguments(node, text)
    raise FormulaError(
        f"{text!r}: a formula has numbers, names, + - * /, comparisons, and, or, not, "
        f"{', '.join(FUNCTIONS)}"
    )


def _arguments(node: ast.Call, text: str) -> list[ast.expr]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS:
        raise FormulaError(f"{text!r}: the functions are {', '.join(FUNCTIONS)}")
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise FormulaError(f"{text!r}: {name} takes plain values")
    if name in _VARIADIC:
        if len(node.args) < 2:
            raise FormulaError(f"{text!r}: {name} takes two values or more")
    elif len(node.args) != 1:
        raise FormulaError(f"{text!r}: {name} takes one value")
    return node.args


def _check_constant(node: ast.Constant, text: str) -> None:
    if isinstance(node.value, (bool, str)):
        return
    if isinstance(node.value, (int, float)):
        try:
            if math.isfinite(float(node.value)):
                return
        except OverflowError:
            pass
        raise FormulaError(f"{text[:40]!r}: a number is too large")
    raise FormulaError(f"{text!r}: {node.value!r} is neither a number nor a text")


def _dotted_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted_name(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _evaluate(node: ast.expr, lookup: Lookup) -> Value | None:
    if isinstance(node, ast.Constant):
        return _real_number(node.value)  # type: ignore[arg-type]
    name = _dotted_name(node)
    if name is not None:
        return CONSTANTS[name] if name in CONSTANTS else _real_number(lookup(name))
    if isinstance(node, ast.BinOp):
        return _evaluate_arithmetic(node, lookup)
    if isinstance(node, ast.UnaryOp):
        return _evaluate_unary(node, lookup)
    if isinstance(node, ast.BoolOp):
        return _evaluate_boolean(node, lookup)
    if isinstance(node, ast.Compare):
        return _evaluate_comparison(node, lookup)
    assert isinstance(node, ast.Call)
    return _call_function(node, lookup)


def _real_number(value: Value | None) -> Value | None:
    """A number as float; ``None`` if it is infinite or NaN. Other values are unchanged."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return float(value) if math.isfinite(value) else None


def _number(value: Value | None) -> float | None:
    return None if value is None or isinstance(value, (bool, str)) else value


def _evaluate_arithmetic(node: ast.BinOp, lookup: Lookup) -> float | None:
    left, right = _number(_evaluate(node.left, lookup)), _number(_evaluate(node.right, lookup))
    if left is None or right is None:
        return None
    try:
        result = _MATH[type(node.op)](left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def _evaluate_unary(node: ast.UnaryOp, lookup: Lookup) -> Value | None:
    value = _evaluate(node.operand, lookup)
    if isinstance(node.op, ast.Not):
        return not value if isinstance(value, bool) else None
    number = _number(value)
    return -number if number is not None and isinstance(node.op, ast.USub) else number


def _evaluate_boolean(node: ast.BoolOp, lookup: Lookup) -> bool | None:
    """Evaluate with three values: one False decides an ``and``, one True an ``or``."""
    decisive = isinstance(node.op, ast.Or)
    values = [_evaluate(part, lookup) for part in node.values]
    if any(value is decisive for value in values):
        return decisive
    return not decisive if all(isinstance(value, bool) for value in values) else None


def _evaluate_comparison(node: ast.Compare, lookup: Lookup) -> bool | None:
    values = [_evaluate(part, lookup) for part in (node.left, *node.comparators)]
    results = [_compare(op, values[n], values[n + 1]) for n, op in enumerate(node.ops)]
    if any(result is False for result in results):
        return False
    return None if any(result is None for result in results) else True


def _compare(op: ast.cmpop, left: Value | None, right: Value | None) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)):
        is_equal = left == right and type(left) is type(right)
        return is_equal if isinstance(op, ast.Eq) else not is_equal
    left_number, right_number = _number(left), _number(right)
    return (
        None
        if left_number is None or right_number is None
        else _ORDER[type(op)](left_number, right_number)
    )


def _call_function(node: ast.Call, lookup: Lookup) -> Value | None:
    assert isinstance(node.func, ast.Name)
    values = [_evaluate(part, lookup) for part in node.args]
    if node.func.id == "known":
        return values[0] is not None
    numbers = [_number(value) for value in values]
    present = [number for number in numbers if number is not None]
    if len(present) < len(numbers):
        return None
    return abs(present[0]) if node.func.id == "abs" else _VARIADIC[node.func.id](*present)


FIO = "fio"
Figures = dict[str, "Value | None"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or fact. ``unit`` is a form of text.py; ``meaning`` describes it in words."""

    unit: str
    meaning: str
    read: Callable[[Point], Value | None] | None = None


def _busiest_cpu(point: Point) -> float | None:
    shares = point.completions
    return float(max(shares, key=lambda cpu: shares[cpu])) if shares else None


_FORMS = {"1/s": "n", "I/Os": "n", "B/s": "b/s", "B": "b", "ns": "t", "share": "%", "%": "pct"}


def _figures(names: str) -> Mapping[str, Figure]:
    """Figures for fields of a point (model/experiment/point.py), each given as NAME or as
    NAME=FIELD."""
    pairs = [(name, of or name) for name, _, of in (word.partition("=") for word in names.split())]
    return {
        name: Figure(_FORMS.get(POINT[of].unit, "1"), POINT[of].meaning, attrgetter(of))
        for name, of in pairs
    }


RUN: Mapping[str, Figure] = {
    **_figures("iops iops_low iops_high read_iops write_iops bw"),
    "block": Figure("b", "mean size of an I/O", lambda p: p.bw / p.iops if p.iops else None),
    **_figures("ios seconds"),
    "latency": Figure("t", "mean latency as fio sees it", lambda p: _fio_value(p, p.latency_ns)),
    **_figures("slat=slat_ns clat=clat_ns p50=p50_ns p99=p99_ns p999=p999_ns max=max_ns slower"),
    "in_flight": Figure("1", "I/Os in flight: IOPS x mean latency",
                        lambda p: _fio_value(p, p.in_flight)),
    **_figures("device_iops device_bw request=request_bytes merges wait=await_ns aqu_sz util"),
    "cpu": Figure("t", "CPU time of the whole machine for each I/O",
                  lambda p: None if p.cpu_us is None else 1000 * p.cpu_us),
    **_figures("fio_cpu switches=ctx_s most=most_completions"),
    "most_on": Figure("0", "number of that CPU", _busiest_cpu),
    **_figures("device_p50=device_p50_ns device_p99=device_p99_ns stayed"),
    "completed_as": Figure("", "what counts a CPU's completions: softirqs or interrupts",
                           lambda p: p.completions_of or None),
    **_figures("wait_cpu wait_above wait_devices wait_unknown"),
    # options of the job, which are known before it runs
    "asked": Figure("0", "I/Os the jobs keep in flight: iodepth x jobs"),
    "iodepth": Figure("0", "iodepth of each job"),
    "jobs": Figure("0", "fio jobs at once"),
    "engine": Figure("", "its ioengine"),
    "on_own": Figure("%", "completions on the job's own CPUs (cpus_allowed)"),
}  # fmt: skip

FACTS: Mapping[str, Figure] = {
    "device.name": Figure("", "the device under the target"),
    "device.kind": Figure("", "nvme, virtio-blk, scsi, loop, dm ..."),
    "device.queues": Figure("0", "hardware queues (hctx); 0: it has no request queue"),
    "device.cpus_per_queue": Figure("1", "CPUs that share a hardware queue"),
    "device.rotational": Figure("", "whether it reports that it rotates"),
    "device.scheduler": Figure("", "its I/O scheduler"),
    "device.other_scheduler": Figure("", "another scheduler that it has"),
    "device.nomerges": Figure("0", "0: merging is on"),
    "device.nr_requests": Figure("0", "requests that each queue can hold"),
    "device.max_request": Figure("b", "largest request (max_sectors_kb)"),
    "device.read_ahead": Figure("b", "read-ahead of buffered reads"),
    "device.rq_affinity": Figure("0", "its rq_affinity"),
    "device.irq_cpu": Figure("0", "CPU that serves the interrupt of device.far_cpu's queue"),
    "device.far_cpu": Figure("0", "a CPU that does not get its queue's interrupt"),
    "host.cpus": Figure("0", "CPUs online"),
    "host.memory": Figure("b", "memory"),
    "target.kind": Figure("", "device, file or directory"),
    "target.fstype": Figure("", "its file system"),
    "target.direct": Figure("", "whether O_DIRECT works there"),
    "can.rq_affinity": Figure("", "whether it can be changed here"),
    "can.scheduler": Figure("", "the same"),
    "can.nomerges": Figure("", "the same"),
    "can.read_ahead_kb": Figure("", "the same"),
    "can.passthrough": Figure("", "whether NVMe commands can be sent past the block layer"),
    "why.passthrough": Figure("", "why they can't"),
    "why.device": Figure("", "why no device is seen under the target"),
    "why.rq_affinity": Figure("", "why changing it would move nothing, or is not possible"),
    "why.scheduler": Figure("", "why it can't be changed"),
    "why.nomerges": Figure("", "the same"),
    "why.read_ahead_kb": Figure("", "the same"),
    "matters.rq_affinity": Figure("", "whether it can move completions here"),
}
FACT_NAMESPACES = frozenset(name.partition(".")[0] for name in FACTS)


def _fio_value(point: Point, value: float | None) -> float | None:
    """``value``, or ``None`` if fio measured no latency, because the kernel's await is a figure of
    its own."""
    return None if point.latency_of == "await" else value


def unit_of(name: str) -> str:
    """The form in which a figure is shown, whatever its run."""
    if name in FACTS:
        return FACTS[name].unit or "n"
    last = name.partition(".")[2]
    if last.startswith(f"{FIO}."):
        return _fio_unit(last.split(".")[1:])
    return RUN[last].unit or "n" if last in RUN else "n"


def _fio_unit(path: list[str]) -> str:
    if any(part.endswith("_ns") for part in path) and path[-1] != "N":
        return "t"
    return {"io_bytes": "b", "bw_bytes": "b/s"}.get(path[-1], "n")


def requested_figures(job_shape: JobShape) -> Figures:
    return {
        "asked": None if job_shape.in_flight is None else float(job_shape.in_flight),
        "iodepth": None if job_shape.iodepth is None else float(job_shape.iodepth),
        "jobs": float(job_shape.jobs),
        "engine": job_shape.engine,
    }


def run_figures(point: Point, document: Mapping[str, Any], own_cpus: frozenset[int]) -> Figures:
    """The measured figures of a run. ``document`` is fio's final document ({}: unknown)."""
    figures: Figures = {
        name: figure.read(point) for name, figure in RUN.items() if figure.read is not None
    }
    if own_cpus and point.completions:
        figures["on_own"] = sum(point.completions.get(cpu, 0.0) for cpu in own_cpus)
    figures |= {f"{FIO}.{path}": value for path, value in flatten_document(document).items()}
    return figures


def flatten_document(document: Mapping[str, Any]) -> Figures:
    """The numbers and words of fio's first row by path, and those of its first disk below
    ``disk``."""
    out: Figures = {}
    for key, target in (("jobs", ""), ("disk_util", "disk.")):
        rows = document.get(key)
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            _flatten(rows[0], target, out)
    return out


def _flatten(data: Mapping[str, Any], prefix: str, out: Figures) -> None:
    for key, value in data.items():
        name = re.sub(r"\W", "_", str(key))
        name = f"_{name}" if name[:1].isdigit() else name
        if isinstance(value, Mapping):
            if name != "bins":
                _flatten(value, f"{prefix}{name}.", out)
        elif isinstance(value, (int, float, str)):
            out[prefix + name] = value
