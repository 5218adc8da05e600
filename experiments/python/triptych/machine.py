"""The systolic array by itself: a machine of any size, its programs, and each cycle of its cells.

The instructions are those of docs/reference/mmu.md, one a line, as its assembler reads them.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any, cast

import numpy

from . import _triptych
from .data import Array
from .table import Table

_INSTRUCTION = [("text", "U200"), ("unit", "U8"), ("start", "u8"), ("end", "u8")]
_STALL = [("cause", "U12"), ("begin", "u8"), ("end", "u8")]


def to_bf16_bits(values: Any) -> Array:
    """The bits of values rounded to bfloat16, to nearest even: u2, as the machine's DRAM has them."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return cast(Array, rounded.astype(numpy.uint16))


def from_bf16_bits(bits: Array) -> Array:
    """bfloat16 numbers as f4."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


class MachineRun:
    """Counters and times of one program."""

    def __init__(self, native: dict[str, Any], pe: str) -> None:
        #: Counters by the names of the manual, including "cycles".
        self.counters: dict[str, int] = native["counters"]
        #: Structured: text, unit, start, end of each instruction, in cycles.
        self.instructions = numpy.array(native["instructions"], dtype=_INSTRUCTION)
        #: Structured: cause, begin, end of each interval without an issue. From the twin only.
        self.stalls = numpy.array(native["stalls"], dtype=_STALL)
        #: Structured [cycle, row, column]: activation, weight, enabled, sum of each cell after each
        #: clock edge. None if not requested.
        self.cells: Array | None = _cells(native, pe) if "sum" in native else None

    @property
    def cycles(self) -> int:
        """From the first instruction to the halt."""
        return self.counters["cycles"]

    def to_pandas(self) -> Any:
        """The instructions as a pandas.DataFrame."""
        names = [name for name, _ in _INSTRUCTION]
        return Table(dict(zip(names, row)) for row in self.instructions.tolist()).to_pandas()

    def _repr_html_(self) -> str:
        return Table({"counter": k, "value": v} for k, v in self.counters.items())._repr_html_()

    def __repr__(self) -> str:
        return f"<MachineRun of {len(self.instructions)} instructions in {self.cycles} cycles>"


def _cells(native: dict[str, Any], pe: str) -> Array:
    value, total = ("f4", "f4") if pe == "bf16" else ("i1", "i4")
    fields = [("activation", value), ("weight", value), ("enabled", "?"), ("sum", total)]
    cells = numpy.empty(native["sum"].shape, fields)
    cells["enabled"] = native["enabled"]
    cells["sum"] = native["sum"].view(total)
    for name in ("activation", "weight"):
        bits = native[name]
        cells[name] = from_bf16_bits(bits) if pe == "bf16" else bits.astype(numpy.uint8).view("i1")
    return cells


class Machine:
    """A systolic array with its memories. They keep their contents from program to program.

    Machine("mmu4") is a shipped configuration. Keywords are the keys of a machine file, with the
    defaults of mmu16: Machine(rows=8, columns=8, dram="hbm"). simulate: "twin" (a C++ model with the
    same bits and cycles), "rtl" (the circuit, for other sizes after `triptych machine build FILE`),
    or "both", which compares them.
    """

    def __init__(self, name: str = "mmu16", *, simulate: str = "twin", **parameters: Any) -> None:
        config = json.loads(_triptych.machine_json(name))
        if "cols" in parameters:
            parameters["columns"] = parameters.pop("cols")
        if parameters:
            config.update({"name": "custom", **parameters})
        self._native = _triptych.Machine(json.dumps(config), simulate)

    @property
    def config(self) -> dict[str, Any]:
        """The machine's file."""
        return cast("dict[str, Any]", json.loads(self._native.config()))

    @property
    def dram(self) -> Array:
        """The bytes of the DRAM. Programs read values written here."""
        return cast(Array, self._native.dram())

    def write(self, address: int, values: Any) -> None:
        """Writes values to the DRAM: floats as bf16 on a bf16 machine, others unchanged."""
        array = numpy.ascontiguousarray(values)
        if array.dtype.kind == "f" and self.config["pe"] == "bf16":
            array = to_bf16_bits(array)
        raw = array.view(numpy.uint8).reshape(-1)
        if address < 0 or address + raw.size > self.dram.size:
            raise _triptych.BadInput(
                f"{raw.size} bytes at {address} reach beyond the DRAM's {self.dram.size}"
            )
        self.dram[address : address + raw.size] = raw

    def read(self, address: int, shape: Any, dtype: Any = numpy.float32) -> Array:
        """A copy of values from the DRAM."""
        count = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        if address < 0 or address + count > self.dram.size:
            raise _triptych.BadInput(
                f"{count} bytes at {address} reach beyond the DRAM's {self.dram.size}"
            )
        raw = self.dram[address : address + count].copy()
        return cast(Array, raw.view(dtype).reshape(shape))

    @property
    def buffer(self) -> Array:
        """The unified buffer as bits, [buffer_rows, rows]."""
        return cast(Array, self._native.buffer())

    @property
    def accumulators(self) -> Array:
        """The accumulators, [accumulator_rows, columns]: f4 on a bf16 machine, otherwise i4."""
        bits = self._native.accumulators()
        return cast(Array, bits.view("f4" if self.config["pe"] == "bf16" else "i4"))

    def run(self, program: str, *, cells: tuple[int, int] | bool = False) -> MachineRun:
        """Runs a program to its halt.

        cells: True, or (begin, end): record the cells' registers in all or these cycles (RTL only).
        """
        begin, end = (0, 2**63 if cells else 0) if isinstance(cells, bool) else cells
        if not 0 <= begin <= end:
            raise _triptych.BadInput(f"cells={cells!r} must be (begin, end) with 0 <= begin <= end")
        return MachineRun(self._native.run(program, begin, end), self.config["pe"])

    def __repr__(self) -> str:
        config = self.config
        return f"<Machine {config['name']}: {config['rows']} x {config['columns']} {config['pe']}>"


def machine_names() -> list[str]:
    """The shipped machines."""
    return cast("list[str]", _triptych.machine_names())


def rtl_machines() -> list[str]:
    """The machines with built-in RTL."""
    return cast("list[str]", _triptych.rtl_machines())
