"""Typical mistakes of lab 6: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
import shutil

TOOLS = ("g++",)
NAIVE = {"naive": 12}
TILED = {"tiled: values": 5, "tiled: sectors": 6, "tiled: banks": 4}
GEMM = {"gemm: values": 5, "gemm: sectors": 6, "gemm: banks": 4}
FLASH = {"flash: values": 8, "flash: bytes": 6, "flash: banks": 4}


def conv(*edits):
    return {"conv.cu": list(edits)}


def flash(*edits):
    return {"flash.cu": list(edits)}


ON_ITS_SIDE = [("a[row][threadIdx.x] =", "a[threadIdx.x][row] ="), ("a[threadIdx.y + 8 * n][d]", "a[d][threadIdx.y + 8 * n]")]
MAIN = """\
#include <cstdio>
__global__ void naive(const float* x, const float* weights, float* y, int C, int K, int H, int W);
int main() {
  naive<<<dim3(1, 1, 1), dim3(32, 8)>>>(nullptr, nullptr, nullptr, 0, 1, 0, 0);
  printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
"""
WRONG = [
    ("lanes down a column",
     conv(("blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * 32 + (threadIdx.y * 32 + threadIdx.x) / 8"),
          ("blockIdx.y * blockDim.y + threadIdx.y", "blockIdx.y * 8 + threadIdx.x % 8")),
     NAIVE, ["which element has the lane next to this one?"]),
    ("sums that are never rescaled", flash(("sum[d] = sum[d] * keep + add", "sum[d] = sum[d] + add")), FLASH,
     ["flash with n = 70", "should be", "counts when the kernel is right"]),
    ("no barrier before the next tile", conv(("    __syncthreads();\n  }\n  if (w < W && h < H)", "  }\n  if (w < W && h < H)")),
     TILED, ["tiled with C = 2, K = 3, H = 13, W = 37: race at line"]),
    ("weights from global memory", conv(("filter[i * 3 + j] *", "weights[(k * C + c) * 9 + i * 3 + j] *")),
     {"tiled: sectors": 6}, ["sectors loaded by", "channels, and at most"]),
    ("zeros forgotten at the edge", conv(("float sum[4] = {0, 0, 0, 0};", "float sum[4] = {0, 0, 0, 0};"),
                                         ("k < K && at < depth ? weights[k * depth + at] : 0", "weights[k * depth + at]")),
     GEMM, ["gemm with C = 2", "at line"]),
    ("a tile that lies on its side",
     conv(*ON_ITS_SIDE),
     {"gemm: banks": 4}, ["passes through the banks for"]),
    ("exponentials without the largest", flash(("fmaxf(largest, score)", "0.0f")), FLASH, ["q and k up to 12", "should be"]),
    ("each thread loads its own query",
     flash(("own[threadIdx.x][d] * scale", "(first + threadIdx.x < n ? q[(first + threadIdx.x) * kColumns + d] : 0) * scale")),
     {"flash: bytes": 6}, ["bytes of global memory, in whole sectors"]),
    ("32 columns in 32 banks", flash(("kColumns + 1]", "kColumns]")), {"flash: banks": 4}, ["passes through the banks for"]),
    ("does not compile", conv(("return;", "return")), {**NAIVE, **TILED, **GEMM}, ["error"]),
    ("another name", flash(("void flash(", "void attention(")), FLASH, ["flash"]),
    ("never ends", flash(("tile += kKeys", "tile += 0")), FLASH, ["flash with n = 70"]),
    ("other predictions than committed", {"answers.json": [('"sectors_of_a_row": 4', '"sectors_of_a_row": 5')]},
     {"sectors_of_a_row": 4, "sectors_of_a_column": 4, "passes_of_a_column_32": 4, "passes_of_a_column_33": 4,
      "tile_saves": 4}, ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"q2": "c"', '"q2": "b"')]}, {"q2": 4}, ["who reads the tile after the barrier"]),
]
if shutil.which("clang++"):
    WRONG.append(("a tile that lies on its side, in a program with main",
                  conv(("constexpr int kTileWidth", MAIN + "constexpr int kTileWidth"), *ON_ITS_SIDE),
                  {"gemm: banks": 4}, ["passes through the banks for"]))
    WRONG.append(("main that does not compile", conv(("constexpr int kTileWidth", "int main() { naive<<<1, 1>>>(); }\nconstexpr int kTileWidth")),
                  {**NAIVE, **TILED, **GEMM}, ["error"]))
