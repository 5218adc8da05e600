#!/usr/bin/env python3
"""Bytes that a step moves between the memory of a GPU and its kernels, and its time, modelled from the plan.

  gpu_step_bytes.py PROGRAM [--model unet-l] [--batch 8] [--contract bf16] [--mode train] [--largest N]

`triptych explain` lists the operands of each kernel as they are stored. A kernel reads each input and writes each
output once, unless PASSES says otherwise. A product on tensor cores rounds the operands that are not stored in
bfloat16. The model ignores the sums of products that are divided along k, statistics of channels, and data that a
cache keeps from one kernel to the next. The time is that of all bytes and that of the products on tensor cores, one
after the other, at assumed rates. Rows of a tile that are not in the result take time, too.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "claims"))
import program  # noqa: E402

WIDTH = {"f32": 4, "bf16": 2, "f16": 2, "i32": 4, "i64": 8, "i8": 1, "u8": 1, "bool": 1}
ROUNDED = WIDTH["bf16"]
TENSOR_CORES = ("hopper", "tensor-core")
ROUNDING, PRODUCTS, POOLING = "rounding of operands", "convolutions and their gradients", "max pooling and its gradient"

# Operators whose kernels read an input more than once: the number of reads of each of the first inputs.
PASSES = {"BatchNormalization": [3], "BatchNormalizationGradient": [2, 2]}
STORED_PASSES = {"BatchNormalization": [2]}  # where input 0 is stored in bfloat16

PARTS = {
    "BatchNormalization": "batch normalisation and its gradient",
    "BatchNormalizationGradient": "batch normalisation and its gradient",
    "Conv": PRODUCTS, "ConvTranspose": PRODUCTS, "ConvWeightGradient": PRODUCTS,
    "Slice": "slices of concat gradients", "Concat": "concats",
    "AdamUpdate": "Adam", "Add": "sums of gradients",
    "MaxPool": POOLING, "MaxPoolGradient": POOLING, "MaxPoolWithIndex": POOLING, "MaxPoolIndexGradient": POOLING,
}
REST = "bias gradients, the loss and the rest"

# Assumed of an H100, TFLOP/s: products by wgmma, and by mma.sync.
RATES = {"hopper": 540, "tensor-core": 300}
TILE_ROWS = 128  # output channels. hopper has tiles of 64, too


def elements(operand):
    return math.prod(operand["shape"])


def stored_bytes(operand):
    return elements(operand) * WIDTH[operand["stored"]]


def rounded_bytes(operand):
    """Bytes of a pass that rounds the operand of a product: none if it is stored rounded."""
    return 0 if operand["stored"] == "bf16" else elements(operand) * (WIDTH[operand["stored"]] + ROUNDED)


def parts_of(node):
    """(part, bytes) of a node of `explain`."""
    op, reads, writes = node["op"].split("(")[0], node["reads"], node["writes"]
    written = sum(map(stored_bytes, writes))
    part = PARTS.get(op, REST)
    if part == PRODUCTS and node["kernel"] in TENSOR_CORES:
        yield ROUNDING, sum(map(rounded_bytes, reads[:2]))
        yield part, ROUNDED * sum(map(elements, reads[:2])) + sum(map(stored_bytes, reads[2:])) + written
    elif op == "Slice":
        yield part, 2 * written
    else:
        stored = reads and reads[0]["stored"] == "bf16" and op in STORED_PASSES
        times = (STORED_PASSES if stored else PASSES).get(op, [])
        yield part, written + sum(stored_bytes(operand) * (times[i] if i < len(times) else 1)
                                  for i, operand in enumerate(reads))


def product_seconds(node):
    """Time of the products of a node on tensor cores."""
    op, result = node["op"].split("(")[0], node["writes"]
    if PARTS.get(op) != PRODUCTS or node["kernel"] not in TENSOR_CORES:
        return 0
    rows = result[0]["shape"][0 if op == "ConvWeightGradient" else 1]
    tile = 64 if node["kernel"] == "hopper" and rows <= 64 else TILE_ROWS
    return node["flops"] * math.ceil(rows / tile) * tile / rows / RATES[node["kernel"]] / 1e12


def seconds_by_kernel(nodes):
    """The time of products by operator and kernel, the longest first."""
    totals = collections.Counter()
    for node in nodes:
        seconds = product_seconds(node)
        if seconds > 0:
            totals[f"{node['op'].split('(')[0]}, {node['kernel']}"] += seconds
    return totals


def bytes_by_part(nodes):
    """The bytes of each part, the largest first."""
    totals = collections.Counter()
    for node in nodes:
        for part, count in parts_of(node):
            totals[part] += count
    return totals


def largest_nodes(nodes, count):
    """(bytes, bytes with each operand once, node) of the nodes with the most bytes."""
    rows = [(sum(moved for _, moved in parts_of(node)), sum(map(stored_bytes, node["reads"] + node["writes"])), node)
            for node in nodes]
    return sorted(rows, key=lambda row: -row[0])[:count]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the program triptych")
    parser.add_argument("--model", default="unet-l")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--contract", default="bf16")
    parser.add_argument("--mode", default="train")
    parser.add_argument("--bandwidth", type=float, default=2850, help="of the memory in GB/s, 2850 of a copy on an H100")
    parser.add_argument("--largest", type=int, default=0, help="number of nodes to list, those with the most bytes")
    return parser.parse_args()


def main():
    asked = parse()
    words = ["explain", "--backend", "cuda-emulated", "--model", asked.model, "--batch", asked.batch,
             "--contract", asked.contract, "--mode", asked.mode]
    try:
        [plan] = program.Program(asked.program, quick=False).results(*words)
    except program.CommandFailed as failure:
        sys.exit(f"gpu_step_bytes: {failure}")
    totals = bytes_by_part(plan["nodes"])
    total = sum(totals.values())
    print(f"{program.command(*words)}: modelled bytes of a step\n")
    for part, count in totals.most_common():
        print(f"{part:40} {count / 1e9:8.3f} GB")
    print(f"{'sum':40} {total / 1e9:8.3f} GB")
    print(f"{f'at {asked.bandwidth:g} GB/s':40} {total / asked.bandwidth / 1e6:8.3f} ms")
    products = seconds_by_kernel(plan["nodes"])
    for kernel, seconds in products.most_common():
        print(f"{kernel:40} {seconds * 1e3:8.3f} ms")
    step = total / asked.bandwidth / 1e9 + sum(products.values())
    print(f"{'bytes and products of the step':40} {step * 1e3:8.3f} ms")
    print(f"{'planned memory':40} {sum(m['total_bytes'] for m in plan['memory']) / 2**30:8.3f} GiB")
    for moved, once, node in largest_nodes(plan["nodes"], asked.largest):
        print(f"{node['node'] + ', ' + node['kernel']:40} {moved / 1e9:8.3f} GB, each operand once {once / 1e9:.3f} GB")


if __name__ == "__main__":
    main()
