"""`triptych kernel debug`: lines, lanes and variables of a warp, in the order in which it runs them."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import platform
import shutil
import unittest

from support import ALL_CASES, ProgramTest, main, repeats_others

# The numbers of the lines stand at their ends.
KERNEL = """struct Pair { float a; int b; };
__constant__ float scale[4] = {2, 4, 6, 8};
__noinline__ __device__ float weight(float x, int k) {
  float y = x * k;  // 4
  return y + 1;
}
__global__ void work(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Pair pair = {x[i], i};
  tile[threadIdx.x] = pair.a;  // 11
  __syncthreads();
  float sum = 0;  // 13
  for (int k = 0; k < 3; ++k) {
    sum += weight(tile[k], k);  // 15
  }
  if (i % 2 == 0) {  // 17
    sum = -sum;  // 18
  } else {
    sum += 1;  // 20
  }
  float4 v = {sum, 1, 2, 3};
  int grid[2][3] = {{1, 2, 3}, {4, 5, i}};
  y[i] = v.x + scale[grid[0][2]];  // 24
}
"""
# Lanes 0 to 19 of the second warp of block 1.
LAUNCH = ["work.cu", "f32:104=count", "f32:104", 104, "--grid", 2, "--block", 52]
WARP = ["--at-block", 1, "--warp", 1]
PROGRAM = """#include <cstdio>
#include "helper.h"
__global__ void add(int* x, int by) {
  extern __shared__ int copy[];
  copy[threadIdx.x] = x[threadIdx.x];
  int* own = copy + threadIdx.x;
  x[threadIdx.x] = shifted(*own, by);  // 7
}
int main() {
  int* x;
  cudaMallocManaged(&x, 32 * sizeof(int));
  for (int i = 0; i < 32; ++i) x[i] = i;
  add<<<1, 32, 128>>>(x, 10);
  add<<<1, 32, 128>>>(x, 100);
  cudaDeviceSynchronize();
  printf("%d\\n", x[3]);
}
"""
HELPER = """#pragma once
template <class T>
__noinline__ __device__ T shifted(const T& x, T by) {
  return x + by;  // 4
}
"""


@unittest.skipIf(shutil.which("clang++") is None and shutil.which("clang++-14") is None, "clang is not installed")
@unittest.skipIf(shutil.which("g++") is None, "g++ is not installed")
@unittest.skipIf(platform.machine() != "x86_64", "needs an x86-64 processor")
@unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ,
                 "kernels are not instrumented, and raise signals that a sanitizer takes for ours")
class Debug(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("work.cu", KERNEL)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def commands(self, *commands):
        return [word for command in commands for word in ("--do", command)]

    def debug(self, *arguments):
        """The document's result."""
        results = self.document("kernel", "debug", *arguments)["results"]
        self.assertEqual(len(results), 1)
        return results[0]

    def lines(self, result):
        return [stop.get("line") for stop in result["stops"]]

    def test_variables_of_each_lane_at_a_line(self):
        result = self.debug(*LAUNCH, *WARP, "--break", "work.cu:17")
        self.assertEqual((result["kernel"], result["block"], result["warp"]), ("work", [1, 0, 0], 1))
        stop, = result["stops"]
        self.assertEqual((stop["line"], stop["active_lanes"]), (17, (1 << 20) - 1))
        # Tile 1 holds 52 to 103: the sum of tile[k] * k + 1.
        total = sum((52 + k) * k + 1 for k in range(3))
        for number, lane in enumerate(stop["lanes"]):
            i = 52 + 32 + number
            self.assertEqual((lane["lane"], lane["thread"], lane["state"]), (number, [32 + number, 0, 0], "active"))
            known = lane["variables"]
            self.assertEqual((known["i"], known["n"], known["sum"]), (i, 104, total))
            self.assertEqual(known["pair"], {"a": i, "b": i})
            self.assertEqual(known["tile"][:52], [*range(52, 104)])
            self.assertEqual(known["x"], "&argument 1 (f32:104=count)")
            for later in ("v", "grid", "k"):
                self.assertNotIn(later, known)

    def test_turns_of_a_loop_and_calls(self):
        moves = self.commands("print k", "continue", "continue", "print k", "step", "print x", "next", "next", "print k",
                              "back")
        result = self.debug(*LAUNCH, *WARP, "--break", 15, *moves)
        self.assertEqual(self.lines(result), [15, 15, 15, 4, 5, 14, 5])
        self.assertEqual([{each["value"] for each in value["lanes"]} for value in result["values"]],
                         [{0}, {2}, {54}, {2}])

    @repeats_others
    def test_next_passes_over_a_call(self):
        result = self.debug(*LAUNCH, "--break", 15, *self.commands("next", "next"))
        self.assertEqual(self.lines(result), [15, 14, 15])

    def test_lanes_part_at_a_branch_and_meet_again(self):
        result = self.debug(*LAUNCH, *WARP, "--break", 17, "--step", 4)
        odd, even = 0xaaaaa, 0x55555  # of 20 lanes
        self.assertEqual([(stop["line"], stop["active_lanes"]) for stop in result["stops"]],
                         [(17, odd | even), (20, odd), (18, even), (19, even), (22, odd | even)])
        waiting = result["stops"][1]["lanes"][0]
        self.assertEqual((waiting["state"], waiting["line"]), ("waits", 18))
        behind = result["stops"][4]["lanes"]
        total = behind[1]["variables"]["sum"] - 1
        self.assertEqual([lane["variables"]["sum"] for lane in behind],
                         [total + 1 if lane % 2 else -total for lane in range(20)])

    def test_expressions(self):
        wanted = {"tile[3]": 55, "tile[threadIdx.x]": None, "x[2]": 2, "*x": 0, "v": None, "v.y": 1, "grid[1][0]": 4,
                  "scale[grid[0][2]]": 8, "blockDim.x": 52, "gridDim.x": 2, "blockIdx.x": 1, "pair.b": None,
                  "y[0]": None}
        result = self.debug(*LAUNCH, *WARP, "--break", 24, *self.commands(*(f"print {each}" for each in wanted)))
        values = {value["expression"]: [lane["value"] for lane in value["lanes"]] for value in result["values"]}
        for expression, value in wanted.items():
            if value is not None:
                self.assertEqual(values[expression], [value] * 20, expression)
        self.assertEqual(values["tile[threadIdx.x]"], [84 + lane for lane in range(20)])
        self.assertEqual(values["pair.b"], [84 + lane for lane in range(20)])
        self.assertEqual([v["w"] for v in values["v"]], [3] * 20)

    def test_memory_is_that_of_the_step(self):
        read = self.commands("print tile[4]", "next", "print tile[4]", "continue", "print y[4]", "step", "print y[4]")
        result = self.debug(*LAUNCH[:2], "f32:104=7", *LAUNCH[3:], "--break", 11, "--break", 24, *read)
        before, behind, old, new = ([lane["value"] for lane in value["lanes"]] for value in result["values"])
        self.assertEqual(set(behind), {4})
        self.assertNotEqual(set(before), {4})
        self.assertEqual((set(old), len(old)), ({7}, 32))
        total = sum(k * k + 1 for k in range(3))
        self.assertEqual((set(new), len(new)), ({8 - total}, 32))

    def test_memory_that_atomic_operations_change_is_marked(self):
        self.write("count.cu", """__global__ void count(int* total, int* other) {
  __shared__ int part[2];
  if (threadIdx.x < 2) part[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&part[1], 1);
  atomicAdd(total, 1);
  other[threadIdx.x] = part[0];
}
""")
        text = self.succeed("kernel", "debug", "count.cu", "i32:1=0", "i32:32", "--block", 32, "--break", "7",
                            *self.commands("print part", "print part[0]", "print *total", "print *other")).stdout
        self.assertRegex(text, r"part = \{0, \d+\} \(atomic\) \(lanes 0-31\)")
        self.assertIn("  part[0] = 0 (lanes 0-31)", text)
        self.assertRegex(text, r"\*total = \d+ \(atomic\) \(lanes 0-31\)")
        self.assertRegex(text, r"\*other = -?\d+ \(lanes 0-31\)")
        values = self.debug("count.cu", "i32:1=0", "i32:32", "--block", 32, "--break", "7",
                            *self.commands("print part", "print part[0]"))["values"]
        self.assertEqual([value["atomic"] for value in values], [True, False])

    def test_text_names_the_place_the_lanes_and_equal_values_once(self):
        text = self.succeed("kernel", "debug", *LAUNCH, *WARP, "--break", 20, *self.commands("lanes", "where", "list",
                                                                                             "help")).stdout
        for part in ("work.cu:20, block (1, 0, 0), warp 1: 10 of 20 lanes active (0x000aaaaa)", "  20 | sum += 1;",
                     "n = 104 in each", "(33, 0, 0)  active    20   85  {a=85, b=85}", "waits     18   84", "work.cu:20 in work",
                     "> 20 | sum += 1;", "go on to the next breakpoint"):
            self.assertIn(part, text)

    def test_results_have_the_bits_of_a_plain_run(self):
        self.write("bits.cu", """__global__ void bits(const float* x, float* y) {
  float sum = 0.1f;
  for (int k = 0; k < 20; ++k) sum = x[threadIdx.x] * sum + 0.3f;
  y[threadIdx.x] = sum;
}
""")
        launch = ["bits.cu", "f32:32=random", "f32:32", "--block", 32]
        self.succeed("kernel", "run", *launch, "--out", "y.npy")
        shown = self.debug(*launch, "--break", 4)["stops"][0]["lanes"]
        ran = memoryview((self.folder / "y.npy").read_bytes()[-128:]).cast("f")
        self.assertEqual([lane["variables"]["sum"] for lane in shown], list(ran))

    def test_a_whole_program_with_a_header_and_several_launches(self):
        self.write("program.cu", PROGRAM)
        self.write("helper.h", HELPER)
        result = self.debug("program.cu", "--launch", 2, "--break", "helper.h:4",
                            *self.commands("print by", "print x", "next", "print own[1]"))
        self.assertEqual(result["kernel"], "add")
        by, x, following = result["values"]
        # The last lane has no neighbour in the launch's 32 words.
        self.assertEqual([lane["value"] for lane in following["lanes"]], [*range(11, 42), None])
        self.assertEqual({lane["value"] for lane in by["lanes"]}, {100})
        self.assertEqual([lane["value"] for lane in x["lanes"]], [lane + 10 for lane in range(32)])
        self.expect_error(2, "kernel", "debug", "program.cu", "--launch", 3, "--json", says="there is no launch 3")

    def test_faults_keep_their_message_and_show_where_the_lanes_stood(self):
        self.write("race.cu", """__global__ void race(float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
""")
        self.write("stuck.cu", """__global__ void stuck(float* y) {
  if (threadIdx.x < 16) {
    __syncthreads();
  }
  y[threadIdx.x] = 1;
}
""")
        self.write("wild.cu", """__global__ void wild(float* y, int n) {
  int i = threadIdx.x + n;
  y[i] = 1;
}
""")
        faults = [(["race.cu", "f32:64", "--block", 64], "race", 3),
                  (["stuck.cu", "f32:32", "--block", 32], "divergent barrier", 3),
                  (["wild.cu", "f32:32", 1 << 20, "--block", 32], "out of bounds", 3)]
        for launch, kind, line in faults if ALL_CASES else faults[:2]:
            run = self.run_program("kernel", "run", *launch, "--json")
            debug = self.run_program("kernel", "debug", *launch, "--break", line, "--json")
            self.assertEqual((run.returncode, debug.returncode), (1, 1), launch)
            expected, = json.loads(run.stdout)["results"][0]["findings"]
            found, = json.loads(debug.stdout)["results"][0]["findings"]
            self.assertEqual((found["kind"], found["line"]), (expected["kind"], expected["line"]))
            self.assertEqual(found["message"], expected["message"])
            self.assertIn(kind, found["kind"])
            stop, = json.loads(debug.stdout)["results"][0]["stops"]
            self.assertEqual(stop["line"], line, launch)

    def test_what_does_not_fit_is_refused_with_a_remedy(self):
        refused = [
            (["--break", "other.cu:17"], ['no code of the kernels is from a file "other.cu"', "work.cu"]),
            (["--break", 16], ["line 16 has no code of a kernel; the next one is 17"]),
            (["--break", 17, "--do", "print k"], ['no variable "k"', "sum", "pair"]),
            (["--break", 17, "--do", "print tile[64]"], ["element 64 of an array of 64"]),
            (["--at-block", 2], ["there is no block (2, 0, 0)"])]
        if ALL_CASES:
            refused += [(["--break", 17, "--do", "print x[104]"], ["none of the arrays"]),
                        (["--do", "jump"], ['no command "jump"', "continue"]),
                        (["--warp", 2], ["has no warp 2"]),
                        (["--threads", 2], ["--threads 1"])]
        for arguments, words in refused:
            with self.subTest(arguments):
                result = self.run_program("kernel", "debug", *LAUNCH, *arguments)
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr)
        self.succeed("kernel", "build", "work.cu", "--out", "work.so")
        self.expect_error(2, "kernel", "debug", "work.so", *LAUNCH[1:], says="give the source")


if __name__ == "__main__":
    main()
