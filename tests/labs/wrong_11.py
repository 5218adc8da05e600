"""Typical mistakes of lab 11: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ("g++",)
HISTOGRAM = {"histogram": 12, "histogram: contention": 8}
SCAN = {"scan": 12, "scan: shared": 6}
COMPACT = {"compact": 12, "compact: blocks": 10}

OFFERED = [
    ("triptych kernel run warps.cu --kernel histogram i32:2048=7 i32:64=0 2048 --grid 2 --block 256", 0, ["warps.cu:9", "nothing wrong was found"]),
    ("triptych kernel run warps.cu --kernel scan i32:500=1 i32:500 i32:2 500 --grid 2 --block 256", 0, ["nothing wrong was found"]),
    ("triptych kernel run warps.cu --kernel compact i32:500=count i32:500=0 i32:1=0 500 --grid 2 --block 256", 0, ["nothing wrong was found"]),
]


def kernels(*edits):
    return {"warps.cu": list(edits)}


LOOP = """\
    unsigned left = __ballot_sync(kAll, i < n);
    while (left != 0) {
      int leader = __ffs(left) - 1;
      unsigned same = __ballot_sync(kAll, value == __shfl_sync(kAll, value, leader));
      if (lane == leader) atomicAdd(&own[value], __popc(same));
      left &= ~same;
    }
"""
BARRIER = "  __syncthreads();\n"
WRONG = [
    ("no barrier before the bins are added", kernels((BARRIER + "  if (threadIdx.x < 64 && own", "  if (threadIdx.x < 64 && own")),
     HISTOGRAM, ["histogram with n = ", "race at line"]),
    ("lanes beyond the end leave", kernels(("  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n  int sum",
                                            "  if (i >= n) return;\n  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n  int sum")),
     SCAN, ["scan with n = ", "at line"]),
    ("an atomic operation per lane", kernels((LOOP, "    if (i < n) atomicAdd(&own[value], 1);\n")), {"histogram: contention": 8},
     ["passes through the banks for atomic operations on", "nine of ten equal"]),
    ("bins that are not zero", kernels(("  if (threadIdx.x < 64) own[threadIdx.x] = 0;\n", "")), HISTOGRAM, ["histogram with n = "]),
    ("the sums of the warps forgotten", kernels(("  if (warp > 0) sum += before;\n", "")), SCAN, ["element [32] should be"]),
    ("an exclusive scan", kernels(("y[i] = sum;", "y[i] = sum - x[i];")), SCAN, ["element [0] should be"]),
    ("totals in every lane", kernels(("  if (lane == 31) totals[warp] = sum;\n", "  totals[warp] = sum;\n")), SCAN, ["race at line"]),
    ("ranks that count the lane itself", kernels(("(1u << lane) - 1", "(2u << lane) - 1")), COMPACT, ["compact with n = "]),
    ("one atomic operation per warp",
     kernels(("  if (lane == 0) begins[warp] = __popc(kept);\n  __syncthreads();\n  if (warp == 0) {", "  if (lane == 0) begins[warp] = atomicAdd(count, __popc(kept));\n  __syncthreads();\n  if (n < 0) {")),
     {"compact: blocks": 10}, ["atomic operations on global memory by", "blocks, and at most"]),
    ("a place for each lane by itself", kernels(("y[begins[warp] + __popc(kept & ((1u << lane) - 1))] = value", "y[begins[warp] + __popc(kept >> lane) - 1] = value")),
     COMPACT, ["the next one of its warp, is y["]),
    ("does not compile", kernels(("__ffs(left)", "ffs_of(left)")), {**HISTOGRAM, **SCAN, **COMPACT}, ["error"]),
    ("a wrong answer", {"answers.json": [('"q4": "a"', '"q4": "b"')]}, {"q4": 4}, ["which warp calls atomicAdd first?"]),
]
