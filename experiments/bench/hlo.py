"""Reads an optimised XLA program: what each turn of its loops launches, waits for, moves and computes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

FREE = {
    "parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "partition-id", "replica-id",
    "opt-barrier", "while", "conditional", "call",
}  # fmt: skip
"""Instructions that launch nothing themselves."""
SHAPE = re.compile(r"\b(pred|[suf]\d+|bf16)\[([\d,]*)\]")
ARITHMETIC = {
    "add", "subtract", "multiply", "divide", "sqrt", "rsqrt", "floor", "ceil", "maximum", "minimum", "clamp", "select",
    "exponential", "log", "log-plus-one", "power", "negate", "abs", "reduce",
}  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """One turn of a loop."""

    name: str
    depth: int
    """Loops around it."""
    trips: int | None
    """How often it turns; None if only the device knows."""
    launches: float
    """Kernels, those of loops inside included."""
    syncs: float
    """Loops inside of unknown turns and branches: answers of the device that the host waits for."""
    inner: int
    """Loops inside."""
    bytes: float
    """Read and written by the kernels; of a table that is only looked up, the entries."""
    float64: float
    """Operations."""


@dataclass
class Sum:
    """What one execution of a computation costs."""

    launches: float = 0
    syncs: float = 0
    inner: int = 0
    bytes: float = 0
    float64: float = 0

    def add(self, other: Sum, times: float = 1) -> None:
        """Adds another, so many times."""
        self.launches += times * other.launches
        self.syncs += times * other.syncs
        self.inner += other.inner
        self.bytes += times * other.bytes
        self.float64 += times * other.float64


@dataclass(frozen=True)
class Instruction:
    """A line of a computation."""

    name: str
    shape: str
    op: str
    operands: tuple[str, ...]
    text: str

    def called(self, key: str) -> list[str]:
        """Computations that an attribute names."""
        many = re.search(key + r"=\{([^}]*)\}", self.text)
        one = re.search(key + r"=%?([\w.\-]+)", self.text)
        names = many.group(1).split(",") if many else [one.group(1)] if one else []
        return [name.strip().lstrip("%") for name in names]

    @property
    def trips(self) -> int | None:
        """The turns of a while instruction, if the compiler knows them."""
        found = re.search(r'known_trip_count[^0-9]*"?n"?[^0-9]*(\d+)', self.text)
        return int(found.group(1)) if found else None


def loops_of(text: str) -> list[Loop]:
    """The loops of a program, from its text.

    Example:
        >>> program = '''
        ... body (p: f64[8]) -> f64[8] {
        ...   p = f64[8]{0} parameter(0)
        ...   ROOT twice = f64[8]{0} add(p, p)
        ... }
        ... test (p: f64[8]) -> pred[] {
        ...   p = f64[8]{0} parameter(0)
        ...   ROOT yes = pred[] constant(true)
        ... }
        ... ENTRY main (x: f64[8]) -> f64[8] {
        ...   x = f64[8]{0} parameter(0)
        ...   ROOT w = f64[8]{0} while(x), condition=test, body=body, backend_config={"known_trip_count":{"n":"3"}}
        ... }
        ... '''
        >>> [(loop.trips, loop.launches, loop.bytes, loop.float64) for loop in loops_of(program)]
        [(3, 1, 192.0, 8)]
    """
    program = dict(_computations(text))
    found: list[Loop] = []
    _sum(program, "ENTRY", 0, found)
    return sorted(found, key=lambda loop: loop.depth)


def _computations(text: str) -> Iterator[tuple[str, list[Instruction]]]:
    name, lines = "", list[Instruction]()
    for line in re.sub(r"/\*index=\d+\*/", "", text).splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$", line)
        if head:
            name, lines = "ENTRY" if head.group(1) else head.group(2), []
        elif name and line.startswith("}"):
            yield name, lines
            name = ""
        elif name and " = " in line:
            lines.append(_instruction(line.strip()))


def _instruction(line: str) -> Instruction:
    name, rest = line.removeprefix("ROOT ").split(" = ", 1)
    end = _closing(rest) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].strip()
    op, rest = rest.split("(", 1)
    inside = rest[: _closing("(" + rest) - 1]
    operands = tuple(re.findall(r"%?([\w.\-]+)(?:,|$)", inside))
    return Instruction(name.lstrip("%"), shape, op, operands, line)


def _closing(text: str) -> int:
    """Where the bracket that ``text`` begins with is closed."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place
    return len(text)


def _sum(
    program: dict[str, list[Instruction]], name: str, depth: int, found: list[Loop] | None
) -> Sum:
    """The costs of one execution of a computation; ``found`` collects the loops."""
    total = Sum()
    shapes = {line.name: line.shape for line in program[name]}
    for line in program[name]:
        if line.op == "while":
            body = line.called("body")[0]
            turn = _sum(program, body, depth + 1, found)
            turn.add(_sum(program, line.called("condition")[0], depth + 1, None))
            if found is not None:
                costs = {key: getattr(turn, key) for key in Sum.__dataclass_fields__}
                found.append(Loop(name=body, depth=depth, trips=line.trips, **costs))
            total.add(turn, 1 if line.trips is None else line.trips)
            total.inner += 1
            total.syncs += line.trips is None
        elif line.op == "conditional":
            keys = ("branch_computations", "true_computation", "false_computation")
            branches = [name for key in keys for name in line.called(key)]
            sides = [_sum(program, branch, depth, found) for branch in branches]
            total.add(max(sides, key=lambda side: side.launches))
            total.syncs += 1
        elif line.op == "call":
            total.add(_sum(program, line.called("to_apply")[0], depth, found))
        elif line.op not in FREE:
            total.launches += 1
            inside = program[line.called("calls")[0]] if line.op == "fusion" else [line]
            total.bytes += _bytes(line.shape) + _read(line, inside, shapes)
            total.float64 += sum(_float64(part) for part in inside)
    return total


def _read(line: Instruction, inside: list[Instruction], shapes: dict[str, str]) -> float:
    """Bytes that a kernel reads."""
    if line.op != "fusion":
        return sum(_bytes(shapes[name]) for name in line.operands if name in shapes)
    number = {}
    for part in inside:
        if part.op == "parameter":
            number[int(part.operands[0])] = part.name
    total = 0.0
    for place, operand in enumerate(line.operands):
        full = _bytes(shapes.get(operand, ""))
        uses = [part for part in inside if number.get(place) in part.operands]
        looked_up = [
            part
            for part in uses
            if part.op in ("gather", "dynamic-slice") and part.operands[0] == number[place]
        ]
        total += (
            sum(_bytes(part.shape) for part in looked_up)
            if uses and len(uses) == len(looked_up)
            else full
        )
    return total


def _bytes(shape: str) -> float:
    def width(kind: str) -> float:
        return 1 if kind == "pred" else 2 if kind == "bf16" else int(kind[1:]) / 8

    return sum(width(kind) * _elements(sizes) for kind, sizes in SHAPE.findall(shape))


def _elements(sizes: str) -> int:
    return math.prod(int(size) for size in sizes.split(",") if size)


def _float64(line: Instruction) -> float:
    found = SHAPE.findall(line.shape)
    if line.op not in ARITHMETIC or not found or found[0][0] != "f64":
        return 0
    return _elements(found[0][1])
