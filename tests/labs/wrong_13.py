"""Typical mistakes of lab 13: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
import pathlib

TOOLS = ("g++", "clang++")
TENSOR = {"tensor: values": 10, "tensor: products": 4}
TILED = {"tiled: values": 8, "tiled: sectors": 6, "tiled: banks": 6}
PIPELINED = {"pipelined: values": 10, "pipelined: sectors": 4, "pipelined: loads": 6, "pipelined: banks": 6}

OFFERED = [
    ("triptych kernel run product.cu plain", 0, ["c is right", "nothing wrong was found"]),
    ("triptych kernel run product.cu tensor", 1, ["product.cu"]),
    ("triptych kernel run pipeline.cu", 1, ["pipeline.cu"]),
]


def kernels(*edits):
    return {"product.cu": list(edits)}


def pipeline(*edits):
    return {"pipeline.cu": list(edits)}


SKELETON = (pathlib.Path(__file__).parents[2] / "experiments/labs/handouts/13-tensor/product.cu").read_text()

WRONG = [
    ("nothing but main", {"product.cu": SKELETON}, {**TENSOR, **TILED},
     ["tensor with M = ", "its result: nothing has written any of the"]),
    ("no tensor cores", kernels(("    wmma::mma_sync(sum, left, right, sum);\n  }\n",
                                 "  }\n  for (int e = threadIdx.x; e < 256; e += 32) {\n    float s = 0;\n    for (int k = 0; k < K; ++k) {\n"
                                 "      s += __half2float(a[(row + e / 16) * K + k]) * __half2float(b[k * N + column + e % 16]);\n    }\n"
                                 "    c[(row + e / 16) * N + column + e % 16] = s;\n  }\n"),
                                ("  wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);\n", "")),
     {"tensor: products": 4}, ["0 products of the tensor cores, and"]),
    ("a pitch with conflicts", kernels(("kPitch = 80", "kPitch = 64")), {"tiled: banks": 6}, ["passes through the banks for"]),
    ("the pitch of the other matrix", kernels(("b + k * N + column, N)", "b + k * N + column, K)")), TENSOR, ["tensor with M = "]),
    ("no barrier after the loads", kernels(("    __syncthreads();\n    Right right[2];", "    Right right[2];")), TILED, ["tiled with M = ", "race at line"]),
    ("half of a warp", kernels(("    wmma::mma_sync(sum, left, right, sum);", "    if (threadIdx.x < 16) wmma::mma_sync(sum, left, right, sum);")),
     TENSOR, ["tensor with M = ", "at line"]),
    ("fragments from global memory",
     kernels(("&lefts[row + 16 * i][0], 16)", "a + (blockIdx.y * 64 + row + 16 * i) * K + k, K)")), {"tiled: sectors": 6},
     ["sectors loaded in"]),
    ("no wait", pipeline(('    asm volatile("cp.async.wait_group 1;");\n', "")), PIPELINED,
     ["pipelined with M = ", "should be", "was not written"]),
    ("no wait for the last copies",
     pipeline(("    if (k + 16 < K) fetch(1 - stage, k + 16);\n    asm volatile(\"cp.async.commit_group;\");\n",
               "    if (k + 16 < K) {\n      fetch(1 - stage, k + 16);\n      asm volatile(\"cp.async.commit_group;\");\n    }\n")),
     PIPELINED, ["pipelined with M = ", "should be"]),
    ("fragments of b without .trans", pipeline(("x4.trans.shared", "x4.shared")), PIPELINED, ["pipelined with M = ", "should be"]),
    ("a1 and a2 exchanged",
     pipeline(("[row + 16 * i + lane % 16][lane / 16 * 8]", "[row + 16 * i + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]")),
     PIPELINED, ["pipelined with M = ", "should be"]),
    ("sums in the wrong rows", pipeline(("16 * i + 8 * half_tile + lane / 4", "16 * i + half_tile + lane / 4 * 2")), PIPELINED,
     ["pipelined with M = ", "should be"]),
    ("rows of b without padding", pipeline(("kRight = 72", "kRight = 64")), {"pipelined: banks": 6}, ["passes through the banks for the fragments of"]),
    ("rows of a without padding", pipeline(("kLeft = 24", "kLeft = 16")), {"pipelined: banks": 6}, ["passes through the banks for the fragments of"]),
    ("no barrier after the wait", pipeline(("wait_group 1;\");\n    __syncthreads();\n", "wait_group 1;\");\n")), PIPELINED,
     ["pipelined with M = ", "race at line"]),
    ("no barrier before the next copies", pipeline(("    __syncthreads();  // before the next copy to this stage\n", "")), PIPELINED,
     ["pipelined with M = ", "race at line"]),
    ("single loads",
     pipeline(("      load(left[i], &lefts[stage][row + 16 * i + lane % 16][lane / 16 * 8]);\n",
               "      for (int r = 0; r < 4; ++r) {\n"
               "        const int from = row + 16 * i + lane / 4 + r % 2 * 8, at = lane % 4 * 2 + r / 2 * 8;\n"
               "        asm volatile(\"ld.shared.b32 %0, [%1];\" : \"=r\"(left[i][r]) : \"r\"(address_of(&lefts[stage][from][at])));\n"
               "      }\n")),
     {"pipelined: loads": 6}, ["requests load from shared memory in"]),
    ("does not compile", kernels(("Sum sum;", "Sun sum;")), {**TENSOR, **TILED}, ["error"]),
    ("a wrong answer", {"answers.json": [('"q5": "b"', '"q5": "c"')]}, {"q5": 3}, ["at which bank does each row of the tile begin?"]),
]
