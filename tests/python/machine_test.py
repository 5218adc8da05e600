"""The systolic array from Python: programs, counters, the cells in each cycle; an emulated GPU's
counters by line."""
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import triptych
from triptych import ops
from triptych.machine import from_bf16_bits, to_bf16_bits

PRODUCT = """
load address=0 pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2 signal=compute
weight_load address=64 pitch=8 rows=4 columns=4
set_stream in_height=1 in_width=4 stride_x=1 out_height=1 out_width=4 step_x=1
set_taps channels=4 kernel_width=1 log2_group=2
matmul wait=load signal=store count=4 rows_left=1 columns_left=4
set_output out_height=1 out_width=4 step_x=16
store wait=compute address=128 count=4 rows_left=1 columns_left=4 columns=4
halt
"""


def open_product(rng, **options):
    """A machine with two matrices in its DRAM."""
    machine = triptych.Machine("mmu4", **options)
    x, w = (rng.integers(-4, 5, (4, 4)).astype(np.float32) for _ in range(2))
    machine.write(0, x)
    machine.write(64, w)
    return machine, x, w


def rtl_or_skip():
    if "mmu4" not in triptych.rtl_machines():
        pytest.skip("this build has no RTL of mmu4")


def test_machine_multiplies(rng):
    machine, x, w = open_product(rng)
    run = machine.run(PRODUCT)
    assert np.array_equal(machine.read(128, (4, 4)), x @ w)
    assert np.array_equal(machine.accumulators[:4], x @ w)
    assert run.counters["macs"] == 64
    assert run.instructions["unit"].tolist()[:2] == ["load", "weights"]
    assert (run.instructions["end"] >= run.instructions["start"]).all()
    assert set(run.stalls.dtype.names) == {"cause", "begin", "end"}
    assert run.cells is None and f"{run.cycles} cycles" in repr(run)


def test_size_is_free():
    machine = triptych.Machine(rows=8, cols=8, dram="ideal")
    assert (machine.config["rows"], machine.config["columns"]) == (8, 8)
    assert repr(machine) == "<Machine custom: 8 x 8 bf16>"
    assert machine.buffer.shape[1] == 8


def test_cells_are_the_circuits(rng):
    """Each cell adds its product to what the row above it had a cycle before."""
    rtl_or_skip()
    machine, x, w = open_product(rng, simulate="rtl")
    run = machine.run(PRODUCT, cells=True)
    cells = run.cells
    assert cells.shape[1:] == (4, 4)
    busy = cells["enabled"].all(axis=(1, 2))
    assert busy.any() and np.array_equal(cells["weight"][busy][-1], w)
    bottom = cells["sum"][:, 3, :]
    for column in range(4):
        expected = (x @ w)[:, column]
        stream = bottom[:, column]
        windows = np.lib.stride_tricks.sliding_window_view(stream, 4)
        assert (windows == expected).all(axis=1).any(), column
    twin, _, _ = open_product(np.random.default_rng(7))
    assert twin.run(PRODUCT).counters == run.counters


def test_window_of_cycles_is_kept():
    rtl_or_skip()
    whole, part = (
        open_product(np.random.default_rng(3), simulate="rtl")[0].run(PRODUCT, cells=cells).cells
        for cells in (True, (20, 60))
    )
    assert part.shape == (40, 4, 4) and whole["activation"][20:60].any()
    assert np.array_equal(part["activation"], whole["activation"][20:60])


def test_bf16_bits_round_to_even():
    values = np.float32([1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -2.5, 3e38])
    bits = to_bf16_bits(values)
    assert from_bf16_bits(bits).tolist()[:4] == [1, 1, 1 + 2 ** -6, -2.5]
    assert bits.dtype == np.uint16


@pytest.mark.parametrize("call, error, words", [
    (lambda: triptych.Machine("mmu5"), triptych.BadInput, "mmu4"),
    (lambda: triptych.Machine(rows=257), triptych.BadInput, "rows = 257"),
    (lambda: triptych.Machine(rowss=8), triptych.BadInput, "rowss"),
    (lambda: triptych.Machine(simulate="fpga"), triptych.BadInput, "fpga"),
    (lambda: triptych.Machine(rows=2, cols=64, simulate="rtl"), triptych.DeviceUnavailable,
     "machine build"),
    (lambda: triptych.Machine("mmu4").run("jump"), triptych.BadInput, "line 1"),
    (lambda: triptych.Machine("\x1b[2J\u202e"), triptych.BadInput, r"\\u001b\[2J\\u202e"),
    (lambda: triptych.Machine("mmu4").run("matmul wait=load\nhalt"), triptych.BadInput,
     "instruction 0"),
    (lambda: triptych.Machine("mmu4").run(PRODUCT, cells=True), triptych.Unsupported, "the twin"),
    (lambda: triptych.Machine("mmu4").run("halt", cells=(5, 1)), triptych.BadInput, r"\(5, 1\) must be"),
    (lambda: triptych.Machine("mmu4").write(2 ** 40, [1.0]), triptych.BadInput, "beyond the DRAM"),
    (lambda: triptych.Machine("mmu4").read(-1, 3), triptych.BadInput, "beyond the DRAM"),
])
def test_misuse_is_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_memory_outlives_its_machine():
    dram = triptych.Machine("mmu4").dram
    dram[:4] = 7
    assert dram[:4].tolist() == [7, 7, 7, 7]


def test_emulated_gpu_counts_by_line():
    with triptych.Graph() as g:
        a, b = g.input("a", (64, 64)), g.input("b", (64, 64))
        g.output("y", ops.relu(a @ b))
    plan = g.plan("cuda-emulated", emulation="counted")
    plan.run(a=np.ones((64, 64), np.float32), b=np.ones((64, 64), np.float32))
    lines, kernels = plan.kernel_lines, plan.kernels
    assert {row["kernel"] for row in lines} == {row["kernel"] for row in kernels}
    assert all(row["line"] > 0 and row["requests"] > 0 for row in lines)
    stores = [r for r in lines if r["space"] == "global" and r["access"] == "store"]
    assert sum(r["useful_bytes"] for r in stores) >= 64 * 64 * 4
    assert "<table>" in lines._repr_html_()
    assert g.plan("cpu").kernel_lines == []
