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
IN_PLACE = {"dynamic-update-slice": 1, "scatter": 2}
"""Instructions that change some entries of their first operand, with the number of the operand that holds the new ones."""
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
    """Read and written by the kernels; of what is only looked up, sliced or changed in place, those entries."""
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
    return Instruction(name=name.lstrip("%"), shape=shape, op=op, operands=operands, text=line)


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
            total.bytes += _moved(line, inside, shapes)
            total.float64 += sum(_float64(part) for part in inside)
    return total


def _moved(line: Instruction, inside: list[Instruction], shapes: dict[str, str]) -> float:
    """Bytes that a kernel reads and writes: of its operands the entries that its results are made of."""
    if line.op != "fusion":
        return _bytes(line.shape) + sum(_bytes(shapes.get(name, "")) for name in line.operands)
    known = {part.name: part for part in inside}
    results = _results(inside, known)
    wanted = _wanted(inside, results)
    total = sum(_bytes(part.shape, wanted[part.name]) for part in inside if part.op == "parameter")
    for part in results:  # of a table that is changed in place, the entries that change are written
        changed = known[part.operands[IN_PLACE[part.op]]] if part.op in IN_PLACE else part
        total += _bytes(changed.shape)
    return total


def _results(inside: list[Instruction], known: dict[str, Instruction]) -> list[Instruction]:
    """What a kernel writes; changes of shape alone are looked through."""
    last = inside[-1]
    found = [known[name] for name in last.operands] if last.op == "tuple" else [last]
    while any(part.op == "bitcast" for part in found):
        found = [known[part.operands[0]] if part.op == "bitcast" else part for part in found]
    return found


def _wanted(inside: list[Instruction], results: list[Instruction]) -> dict[str, float]:
    """How many entries of each instruction of a kernel are computed or read at all.

    From the results backwards: slices and look-ups want of what stands before them only what they take. Uses of one
    array are added up to its size, as if each took other entries.
    """
    sizes = {part.name: _size(part.shape) for part in inside}
    wanted = dict.fromkeys(sizes, 0.0)
    for part in results:
        wanted[part.name] = sizes[part.name]
    for part in reversed(inside):  # what uses an instruction stands behind it
        share = wanted[part.name] = min(wanted[part.name], sizes[part.name])
        kept = part.op in IN_PLACE and part in results
        for name in dict.fromkeys(part.operands[1:] if kept else part.operands):
            if name not in sizes or part.op == "tuple":
                continue
            if part.op in ("reduce", "concatenate"):
                wanted[name] += sizes[name] * share / sizes[part.name]
            else:
                wanted[name] += share
    return wanted


def _bytes(shape: str, entries: float | None = None) -> float:
    """Bytes of an array or a tuple of them; or of so many entries of an array."""

    def width(kind: str) -> float:
        return 1 if kind == "pred" else 2 if kind == "bf16" else int(kind[1:]) / 8

    found = SHAPE.findall(shape)
    if entries is not None:
        return sum(width(kind) for kind, _ in found) * entries
    return sum(width(kind) * _elements(sizes) for kind, sizes in found)


def _size(shape: str) -> int:
    """Entries of an array; of a tuple, those of all its arrays."""
    return sum(_elements(sizes) for _, sizes in SHAPE.findall(shape))


def _elements(sizes: str) -> int:
    return math.prod(int(size) for size in sizes.split(",") if size)


def _float64(line: Instruction) -> float:
    found = SHAPE.findall(line.shape)
    if line.op not in ARITHMETIC or not found or found[0][0] != "f64":
        return 0
    return _elements(found[0][1])
