"""Typical mistakes of lab 13: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
import pathlib

TOOLS = ("g++", "clang++")
TENSOR = {"tensor: values": 14, "tensor: products": 8}
TILED = {"tiled: values": 14, "tiled: sectors": 14, "tiled: banks": 10}

OFFERED = [
    ("triptych kernel run product.cu plain", 0, ["c is right", "nothing wrong was found"]),
    ("triptych kernel run product.cu tensor", 1, ["product.cu"]),
]


def kernels(*edits):
    return {"product.cu": list(edits)}


SKELETON = (pathlib.Path(__file__).parents[2] / "experiments/labs/handouts/13-tensor/product.cu").read_text()

WRONG = [
    ("nothing but main", {"product.cu": SKELETON}, {**TENSOR, **TILED},
     ["tensor with M = ", "its result: nothing has written any of the"]),
    ("no tensor cores", kernels(("    wmma::mma_sync(sum, left, right, sum);\n  }\n",
                                 "  }\n  for (int e = threadIdx.x; e < 256; e += 32) {\n    float s = 0;\n    for (int k = 0; k < K; ++k) {\n"
                                 "      s += __half2float(a[(row + e / 16) * K + k]) * __half2float(b[k * N + column + e % 16]);\n    }\n"
                                 "    c[(row + e / 16) * N + column + e % 16] = s;\n  }\n"),
                                ("  wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);\n", "")),
     {"tensor: products": 8}, ["0 products of the tensor cores, and"]),
    ("a pitch with conflicts", kernels(("kPitch = 80", "kPitch = 64")), {"tiled: banks": 10}, ["passes through the banks for"]),
    ("the pitch of the other matrix", kernels(("b + k * N + column, N)", "b + k * N + column, K)")), TENSOR, ["tensor with M = "]),
    ("no barrier after the loads", kernels(("    __syncthreads();\n    Right right[2];", "    Right right[2];")), TILED, ["tiled with M = ", "race at line"]),
    ("half of a warp", kernels(("    wmma::mma_sync(sum, left, right, sum);", "    if (threadIdx.x < 16) wmma::mma_sync(sum, left, right, sum);")),
     TENSOR, ["tensor with M = ", "at line"]),
    ("fragments from global memory",
     kernels(("&lefts[row + 16 * i][0], 16)", "a + (blockIdx.y * 64 + row + 16 * i) * K + k, K)")), {"tiled: sectors": 14},
     ["sectors loaded by"]),
    ("does not compile", kernels(("Sum sum;", "Sun sum;")), {**TENSOR, **TILED}, ["error"]),
    ("a wrong answer", {"answers.json": [('"q5": "b"', '"q5": "c"')]}, {"q5": 4}, ["at which bank does each row of the tile begin?"]),
]
