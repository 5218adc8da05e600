"""`triptych kernel`: one's own CUDA kernels, compiled, run on arrays, refused in plain words."""
# SPDX-License-Identifier: Apache-2.0
import array
import json
import os
import shutil
import struct
import unittest

from support import NVCC, SOURCE, ProgramTest, main

PLAIN = SOURCE / "tests" / "unit" / "cuda" / "plain"
SCALE = """__global__ void scale(const float* x, float* y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""


def npy_bytes(values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            array.array("f", values).tobytes())


@unittest.skipIf(shutil.which("g++") is None, "g++ is not installed")
@unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ,
                 "kernels are not instrumented, and raise signals that a sanitizer takes for ours")
class Kernel(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("scale.cu", SCALE)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def scale(self, *options, n=100):
        return ["kernel", "run", "scale.cu", "x.npy", f"f32:{n}", "0.5", str(n), "--grid", "2",
                "--block", "64", *options]

    def test_one_line_compiles_runs_counts_and_keeps_what_was_written(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        (self.folder / "half.npy").write_bytes(npy_bytes([i / 2 for i in range(100)]))
        text = self.succeed(*self.scale("--out", "y.npy", "--expect", "half.npy")).stdout
        for word in ("nothing wrong was found", "scale.cu:3", "if (i < n) y[i] = factor * x[i];",
                     "equal within the tolerance"):
            self.assertIn(word, text)
        self.assertEqual((self.folder / "y.npy").read_bytes()[-400:],
                         (self.folder / "half.npy").read_bytes()[-400:])

    def test_a_sample_of_the_blocks_is_stated(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        (self.folder / "half.npy").write_bytes(npy_bytes([i / 2 for i in range(100)]))
        words = self.scale("--expect", "half.npy", "--sample", "2")
        text = self.succeed(*words).stdout
        self.assertIn("counted and checked: blocks 0, 2, 4, ... of each kernel, numbered through all of its launches "
                      "(--sample 2); all counters and", text)
        self.assertLess(text.index("counted and checked"), text.index("global requests"))
        result = self.document(*words)["results"][0]
        self.assertEqual((result["sample"], result["counters"]["blocks"]), (2, 1))
        self.assertTrue(result["comparisons"][0]["equal"])
        self.assertNotIn("counted and checked", self.succeed(*self.scale()).stdout)

    def test_a_source_of_gigabytes_is_refused(self):
        os.truncate(self.folder / "scale.cu", 1 << 40)
        for command in (self.scale(), ["kernel", "run", "scale.cu", "f32:4"], ["kernel", "build", "scale.cu"]):
            self.expect_error(2, *command, says=["scale.cu", "the limit for a source is"])

    def test_json_has_every_counter_of_every_line(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        result = self.document(*self.scale("--out", "y.npy"))["results"][0]
        self.assertEqual(result["findings"], [])
        lines = result["counters"]["lines"]
        self.assertEqual([(each["file"], each["line"], each["access"]) for each in lines],
                         [("scale.cu", 3, "load"), ("scale.cu", 3, "store")])
        # 100 floats: three warps of 32 lanes and one of 4.
        for each in lines:
            counts = [each[key] for key in ("requests", "lanes", "useful_bytes", "sectors")]
            self.assertEqual(counts, [4, 100, 400, 13])
        passes = {each["line"]: each for each in result["counters"]["passes"]}
        self.assertEqual(passes[3]["divergent_warps"], 1)
        self.assertIsNone(result["counters"]["occupancy"][0]["registers"])
        self.assertEqual(result["outputs"], [{"argument": 2, "spec": "f32[100]"}])

    def test_costs_are_those_of_the_named_gpu(self):
        self.write("sum.cu", "__constant__ float weight[32];\n"
                             "__global__ void sum(const float* x, float* y) {\n"
                             "  float value = 0;\n"
                             "  for (int turn = 0; turn < 4; ++turn) value += weight[turn] * x[threadIdx.x];\n"
                             "  if (threadIdx.x % 2 == 1) atomicAdd(y, value);\n}\n")
        command = ["kernel", "run", "sum.cu", "f32:32=1", "f32:1=0", "--block", "32", "--gpu", "t4"]
        counters = self.document(*command)["results"][0]["counters"]
        load, atomic = counters["global"]["load"], counters["global"]["atomic"]
        # The L1 serves three of the four turns.
        self.assertEqual((load["sectors"], load["l2_sectors"], load["memory_sectors"]), (16, 4, 4))
        self.assertEqual((atomic["requests"], atomic["contention"]), (1, 16))
        self.assertEqual((counters["constant"]["load"]["requests"], counters["constant"]["load"]["wavefronts"]), (4, 4))
        branches = {each["line"]: each for each in counters["branches"]}
        self.assertEqual((branches[5]["warps"], branches[5]["divergent_warps"]), (1, 1))
        self.assertEqual((branches[4]["warps"], branches[4]["divergent_warps"]), (5, 0))
        lines = {(each["line"], each["space"]): each for each in counters["lines"]}
        self.assertEqual(lines[4, "global"]["l2_sectors"], 4)
        self.assertEqual(lines[5, "global"]["contention"], 16)
        bounds = counters["bounds"]
        self.assertEqual((bounds["gpu"], bounds["operations"]), ("Tesla T4", 4 * 32 * 2))
        memory = next(each for each in bounds["units"] if each["unit"] == "memory")
        self.assertAlmostEqual(memory["time"]["value"], memory["work"] / 320e9, delta=1e-12)
        text = self.succeed(*command).stdout
        for word in ("costs on Tesla T4", "least time of each unit", "branches at which its lanes part", "sum.cu:5"):
            self.assertIn(word, text)

    def test_registers_are_those_of_nvcc(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "nvcc").write_text(f"#!/bin/sh\necho \"$@\" > '{self.folder}/arguments'\n"
                                    "echo \"ptxas info    : Compiling entry function '_Z5scalePKfPffi' for 'sm_75'\"\n"
                                    "echo 'ptxas info    : Used 40 registers, 376 bytes cmem[0]'\n")
        (tools / "nvcc").chmod(0o755)
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        run = self.run_program(*self.scale("--gpu", "t4", "--no-contraction", "--json"),
                               env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        counters = json.loads(run.stdout)["results"][0]["counters"]
        registers = {each["compute_capability"]: each["registers"] for each in counters["occupancy"]}
        self.assertEqual((registers["7.5"], registers["9.0"]), (40, None))
        words = (self.folder / "arguments").read_text().split()
        self.assertLess({"-cubin", "-arch=sm_75", "-fmad=false"}, set(words))

    @unittest.skipIf(NVCC is None, "nvcc is not installed")
    def test_registers_of_an_installed_nvcc_are_found(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        run = self.run_program(*self.scale("--json"),
                               env={**os.environ, "PATH": f"{os.environ['PATH']}:{os.path.dirname(NVCC)}"})
        occupancy = json.loads(run.stdout)["results"][0]["counters"]["occupancy"]
        self.assertIn(next(each["registers"] for each in occupancy if each["compute_capability"] == "9.0"),
                      range(4, 33))

    def page(self, *words):
        self.succeed("page", "gpu", *words, "--out", "mine.html", "--overwrite")
        html = (self.folder / "mine.html").read_text()
        return json.loads(html.split('id="record">')[1].split("</script>")[0])

    def test_a_page_shows_each_step_of_a_warp(self):
        self.write("odd.cu", "__global__ void odd(float* y) {\n"
                             "  if (threadIdx.x % 2 == 1)\n    y[threadIdx.x] = 1;\n"
                             "  y[threadIdx.x + 32] = 2;\n}\n"
                             "__global__ void all(float* y) {\n  y[threadIdx.x] = 1;\n}\n")
        record = self.page("odd.cu", "f32:64", "--kernel", "odd", "--block", "32", "--beside", "all")
        self.assertEqual([each["name"] for each in record["versions"]], ["odd", "all"])
        steps = record["versions"][0]["warps"][0]["steps"]
        requests = [(each["line"], each["mask"], each["cost"]) for each in steps if "at" in each]
        # Odd lanes store, then all lanes together.
        self.assertEqual(requests, [(3, 0xAAAAAAAA, 4), (4, 0xFFFFFFFF, 4)])
        self.assertEqual(requests and steps[-1]["at"][:2], [128, 132])
        self.assertIn("__global__ void odd", record["sources"]["odd.cu"])
        self.assertEqual([each["divergent_warps"] for each in record["versions"][0]["counters"]["branches"]], [1])

    def test_a_page_shows_a_fault(self):
        self.write("far.cu", "__global__ void far(float* y) {\n  y[threadIdx.x] = 1;\n}\n")
        version = self.page("far.cu", "f32:16", "--block", "32")["versions"][0]
        self.assertIn("out of bounds at far.cu:2", version["finding"])
        self.assertIsNone(version["counters"])

    def test_values_that_differ_are_named_by_their_place(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        wrong = [i / 2 for i in range(100)]
        wrong[7] = 9
        (self.folder / "wrong.npy").write_bytes(npy_bytes(wrong))
        result = self.run_program(*self.scale("--expect", "wrong.npy"))
        self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
        self.assertIn("1 of 100 elements differ; the first is [7]: 3.5, and 9 was expected",
                      result.stdout)

    def test_a_fault_is_a_finding(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(90)))
        result = self.run_program(*self.scale("--json"))
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        finding = json.loads(result.stdout)["results"][0]["findings"][0]
        self.assertEqual((finding["kind"], finding["file"], finding["line"], finding["block"],
                          finding["thread"]),
                         ("out of bounds", "scale.cu", 3, [1, 0, 0], [26, 0, 0]))
        self.assertIn("element 90 of argument 1 (x.npy), which has 90", finding["message"])

    def test_build_lists_kernels_and_keeps_a_library(self):
        text = self.succeed("kernel", "build", "scale.cu", "--out", "scale.so").stdout
        self.assertIn("scale(const float*, float*, float, int)", text)
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        arguments = self.scale("--brief")
        arguments[2] = "scale.so"
        self.assertIn("nothing wrong was found", self.succeed(*arguments).stdout)
        results = self.document("kernel", "build", str(PLAIN / "memory.cu"))["results"]
        self.assertIn("transposed<33>", [each["kernel"] for each in results])
        self.assertEqual(results[0]["parameters"], ["const float*", "float*"])

    def test_a_template_is_taken_with_its_arguments(self):
        self.write("fill.cu", "template <int kValue> __global__ void fill(int* y) {\n"
                              "  y[threadIdx.x] = kValue + OFFSET;\n}\n")
        text = self.succeed("kernel", "run", "fill.cu", "i32:4", "--kernel", "fill<7>", "--block",
                            "4", "--define", "OFFSET=3").stdout
        self.assertIn("10 10 10 10", text)

    def test_sources_that_are_wrong_are_told_in_the_compilers_words(self):
        self.write("wrong.cu", "__global__ void f(float* y) {\n  y[0] = undeclared;\n}\n")
        self.expect_error(2, "kernel", "build", "wrong.cu",
                          says=["wrong.cu:2:", "undeclared", "does not compile"])
        self.write("host.cu", SCALE + "int main() { scale<<<1, 1>>>(0, 0, 1, 1); }\n")
        self.expect_error(2, "kernel", "build", "host.cu", says=["host.cu:5:", "#ifdef __CUDACC__"])
        self.write("half.cu", "#include <cuda_fp16.h>\n" + SCALE)
        self.expect_error(2, "kernel", "build", "half.cu", says=["half.cu:1", "half precision: not in the emulation"])
        self.write("none.cu", "void f(float* y) { y[0] = 1; }\n")
        self.expect_error(2, "kernel", "build", "none.cu", says=["no kernel", "__global__"])
        self.expect_error(2, "kernel", "build", "absent.cu", says=["absent.cu"])

    def test_barriers_skip_threads_that_have_ended_when_asked(self):
        self.write("early.cu", "__global__ void early(const float* x, float* y, int n) {\n"
                               "  __shared__ float tile[64];\n  const int t = threadIdx.x;\n"
                               "  if (t >= n) return;\n  tile[t] = x[t];\n  __syncthreads();\n"
                               "  y[t] = tile[n - 1 - t];\n}\n")
        command = ["kernel", "run", "early.cu", "f32:64=count", "f32:64=0", "40", "--block", "64"]
        refused = self.run_program(*command)
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        for part in ("early.cu:6", "with --skip-ended barriers wait only for threads that have not ended"):
            self.assertIn(part, refused.stdout)
        for confined in ([], ["--confine"]):
            text = self.succeed(*command, "--skip-ended", *confined).stdout
            for part in ("no fault was found", "warning: ", "early.cu:6", "39 38 37"):
                self.assertIn(part, text)
            self.assertNotIn("nothing wrong", text)
        result = self.document(*command, "--skip-ended")["results"][0]
        self.assertEqual((len(result["findings"]), len(result["warnings"])), (0, 1))

    def test_occupancy_without_registers_is_an_upper_bound(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        text = self.succeed(*self.scale(), env={**os.environ, "PATH": "/usr/bin:/bin"}).stdout  # without nvcc
        row = next(line for line in text.splitlines() if "unknown" in line)
        self.assertRegex(row, r"unknown +at most 64/64")
        self.assertIn("compute capability 9.0", text)

    def test_occupancy_is_that_of_the_named_gpu(self):
        (self.folder / "x.npy").write_bytes(npy_bytes(range(100)))
        text = self.succeed(*self.scale("--gpu", "t4"), env={**os.environ, "PATH": "/usr/bin:/bin"}).stdout
        self.assertRegex(text, r"unknown +at most 32/32")
        self.assertIn("compute capability 7.5", text)

    def test_the_corrected_kernel_of_lab_6_loads_as_a_warp_in_lockstep(self):
        """By hand: 32 neighbouring floats of a row of 40 in 4 or 5 sectors, less at the borders."""
        source = SOURCE / "tests" / "labs" / "solutions" / "6-cuda" / "conv.cu"
        command = ["kernel", "run", source, "--kernel", "naive", "f32:3x16x40=random",
                   "f32:2x3x3x3=random", "f32:2x16x40=0", *"3 2 16 40".split(), "--grid", "2,2,2", "--block", "32,8"]
        handout = (SOURCE / "experiments/labs/handouts/6-cuda/README.md").read_text()
        self.assertIn(" ".join(map(str, command[3:])), handout)
        load = self.document(*command)["results"][0]["counters"]["global"]["load"]
        self.assertEqual(load["sectors"], 6348)
        self.assertLessEqual(load["sectors"], 4 * load["requests"])

    def test_arguments_that_do_not_fit_are_named(self):
        self.succeed("kernel", "build", "scale.cu", "--out", "scale.so")
        run = ["kernel", "run", "scale.so"]
        self.expect_error(2, *run, "f32:8", "f32:8", "1",
                          says=["scale(const float*, float*, float, int)", "takes 4",
                                "3 were given"])
        self.expect_error(2, *run, "i32:8", "f32:8", "1", "8",
                          says=["argument 1", "const float*", "i32[8]"])
        self.expect_error(2, *run, "f32:8", "f32:8", "1", "eight",
                          says=["argument 4", "whole number"])
        self.expect_error(2, *run, "f32:8", "f32:8", "1", "8", "--kernel", "scales",
                          says=['"scales"', "scale"])
        self.expect_error(2, *run, "f32:8", "f32:8", "1", "8", "--grid", "0", says=["--grid", "0"])
        self.expect_error(2, *run, "f32:8", "f32:8", "1", "8", "--block", "4096",
                          says=["beyond what a GPU takes", "4096"])
        self.expect_error(2, *run, "f32:8=1", "f32:8", "1", "8", "--out", "3=y.npy",
                          says=["--out", "arguments 2"])


if __name__ == "__main__":
    main()
