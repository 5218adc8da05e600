"""Traffic of attention between a GPU's global memory and its chip: the claim "flash-attention"."""
# SPDX-License-Identifier: Apache-2.0
from program import command
from report import axis, bytes_text, figure, finding, line_chart, ratio, series, table
from rules import judge_attention

HEAD = 64  # columns of a head
TILE = 64  # queries of a block of the kernel `flash`
FLOAT, SECTOR = 4, 32  # bytes
LENGTHS = (128, 256, 512)


def flash_formula(length):
    """Queries and results once, keys and values once for each tile of queries."""
    return FLOAT * HEAD * length * (2 + 2 * length / TILE)


def moved_bytes(program, kernel):
    """Bytes that a kernel moves at each length, in whole sectors."""
    rows = program.results("bench", "attention", "--backend", "cuda-emulated", "--lengths", ",".join(map(str, LENGTHS)),
                           "--head-size", HEAD, "--kernel", kernel)
    return [float(SECTOR * sum(one["global"][access]["sectors"] for one in row["counters"]
                               for access in ("load", "store"))) for row in rows]


def predicted(materialised):
    """The materialised form's law, a n^2 + b n, from the two shorter lengths, at the longest."""
    slopes = [moved / length for moved, length in zip(materialised, LENGTHS)]
    square = (slopes[1] - slopes[0]) / (LENGTHS[1] - LENGTHS[0])
    return square * LENGTHS[2] ** 2 + (slopes[0] - square * LENGTHS[0]) * LENGTHS[2]


def examine_attention(program):
    flash, materialised = moved_bytes(program, "flash"), moved_bytes(program, "materialised")
    formula = [flash_formula(length) for length in LENGTHS]
    rows = [[length, figure(small, "byte", "simulated"), figure(law, "byte", "modelled"),
             figure(large, "byte", "simulated"), ratio(large / small, "simulated", "simulated"),
             figure(large / (FLOAT * length ** 2), "1", "simulated")]
            for length, small, law, large in zip(LENGTHS, flash, formula, materialised)]
    return finding(
        judge_attention((flash[-1], formula[-1]), (materialised[-1], predicted(materialised))),
        f"At {LENGTHS[-1]} queries of {HEAD} columns the materialised form moves {bytes_text(materialised[-1])}, flash "
        f"{bytes_text(flash[-1])}: {materialised[-1] / flash[-1]:.1f} times less. The formula, 4 d n (2 + 2 n / {TILE}) "
        f"bytes, gives {bytes_text(formula[-1])}.",
        [command("bench", "attention", "--backend", "cuda-emulated", "--lengths", f"{LENGTHS[0]}..{LENGTHS[-1]}",
                 "--kernel", "materialised,flash")],
        [table("Global memory of one head",
               [("length", "1"), ("flash, counted", "byte"), ("flash, formula", "byte"),
                ("materialised, counted", "byte"), ("ratio", "x"), ("in passes over the scores", "1")], rows)],
        [line_chart("attention-bytes", "Bytes between HBM and the chip", axis("queries and keys", "1", log=True),
                    axis("moved", "byte", log=True),
                    [series("flash, counted", "simulated", zip(LENGTHS, flash)),
                     series("flash, formula", "modelled", zip(LENGTHS, formula)),
                     series("materialised, counted", "simulated", zip(LENGTHS, materialised))])])
