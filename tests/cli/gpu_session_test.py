"""What of experiments/bench/gpu_session.sh needs no GPU: how it refuses, and what it makes of results."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shlex
import subprocess
import sys

from support import SOURCE, ProgramTest, main

BENCH = SOURCE / "experiments" / "bench"


class Refusals(ProgramTest):
    def session(self, *arguments, nvidia_smi=None):
        """Runs it where nvidia-smi is this script, or is not there."""
        tools = self.folder / "tools"
        tools.mkdir()
        for tool in ("bash", "env", "dirname", "head"):
            os.symlink(f"/usr/bin/{tool}", tools / tool)
        if nvidia_smi is not None:
            (tools / "nvidia-smi").write_text(f"#!/usr/bin/env bash\n{nvidia_smi}\n")
            (tools / "nvidia-smi").chmod(0o755)
        return subprocess.run([BENCH / "gpu_session.sh", *arguments], cwd=self.folder, text=True,
                              capture_output=True, env={"PATH": str(tools)}, timeout=60)

    def test_a_machine_without_a_gpu_is_exit_code_3_with_the_reason(self):
        result = self.session()
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("there is no nvidia-smi", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_a_driver_that_finds_none_is_told(self):
        result = self.session(nvidia_smi='echo "No devices were found"; exit 6')
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("No devices were found", result.stderr)

    def test_the_program_takes_every_command(self):
        """A session whose tools only say yes; what it types then goes to the program."""
        tools, build = self.folder / "tools", self.folder / "build"
        typed = self.folder / "typed"

        def script(path, text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/usr/bin/env bash\n{text}\n")
            path.chmod(0o755)
        script(tools / "nvidia-smi", "echo 9.0")
        for tool in ("cmake", "ninja", "compute-sanitizer", "ncu"):
            script(tools / tool, "")
        script(build / "experiments/triptych", f'printf "%q " "$@" >> {typed}; echo >> {typed}')
        script(build / "tests/conformance/backend_test", "")
        subprocess.run([BENCH / "gpu_session.sh", "--out", self.folder / "out", "--build", build],
                       capture_output=True, timeout=120,
                       env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        commands = [shlex.split(line) for line in typed.read_text().splitlines()]
        self.assertGreater(len(commands), 20)
        self.assertIn("hopper", sum(commands, []))
        for command in commands:
            result = self.run_program(*command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            # 3: without a GPU that is all that is wrong with it.
            self.assertIn(result.returncode, (0, 3), f"{command}\n{result.stderr}")

    def test_wrong_usage_is_exit_code_2(self):
        self.assertEqual(self.session("--fast").returncode, 2)


def row(name, gflops):
    return {"name": name, "gflops": gflops, "median": {"value": 1 / gflops}}


class Report(ProgramTest):
    def report(self, phases):
        """What the report says of (name, exit code, what it printed)."""
        work, out = self.folder / "work", self.folder / "out"
        work.mkdir()
        out.mkdir()
        lines = []
        for name, code, printed in phases:
            lines.append(f"{name}\t1\t{code}\tcommand of {name}\n")
            (work / f"{name}.out").write_text(
                printed if isinstance(printed, str) else json.dumps(printed))
        (work / "phases").write_text("".join(lines))
        result = subprocess.run([sys.executable, "-B", BENCH / "gpu_report.py", work, out, SOURCE],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stderr, "")
        files = list(out.iterdir())
        self.assertEqual(len(files), 1)
        document = json.loads(files[0].read_text())
        return result, {bar["what"]: bar for bar in document["bars"]}, document

    def test_each_bar_is_judged_by_its_rival_of_the_same_session(self):
        _, bars, document = self.report([
            ("matmul_bf16_tensor-core", 0, {"results": [row("matmul/4096x4096x4096", 950.0),
                                                        row("matmul/8192x8192x8192", 800.0)]}),
            ("matmul_bf16_cublaslt", 0, {"results": [row("matmul/4096x4096x4096", 1000.0),
                                                     row("matmul/8192x8192x8192", 1000.0)]}),
            ("step_unet_l", 0, {"results": [{"median": {"value": 0.010}}]}),
            ("torch", 0, {"unet_l_eager": 0.014, "unet_l_compiled": 0.009,
                          "unet_s_eager": "not measured: no memory"})])
        self.assertTrue(bars["own bf16 matrix product 4096 beside cuBLASLt, FLOP/s"]["met"])
        self.assertFalse(bars["own bf16 matrix product 8192 beside cuBLASLt, FLOP/s"]["met"])
        self.assertAlmostEqual(
            bars["unet-l step, batch 8, bf16, beside PyTorch eager, 1/s"]["ratio"], 1.4)
        self.assertFalse(bars["unet-l step, batch 8, bf16, beside torch.compile, 1/s"]["met"])
        self.assertEqual(bars["unet-s step, batch 1, f32, beside PyTorch eager, 1/s"]["open"],
                         "not measured: no memory")
        self.assertEqual(document["kind"], "recorded")
        self.assertIn("date", document)
        self.assertIn("gpu", document["machine"])

    def test_the_worst_layer_counts(self):
        def node(name, why, size=3):
            return {"node": name, "op": f"Conv(kernel_shape=[{size}, {size}])", "why": why}
        _, bars, _ = self.report([("layers_bf16", 0, {"results": [{"nodes": [
            node("a", "measured now: implicit 12 us, cudnn: needs more, cudnn-nhwc 11 us"),
            node("b", "measured before: implicit 20.5 us, cudnn-nhwc 1.025e+01 us"),
            node("head", "measured now: implicit 9 us, cudnn-nhwc 1 us", size=1)]}]})])
        entry = bars["own bf16 3x3 convolutions of unet-l beside cuDNN, worst layer"]
        self.assertEqual(sorted(entry["layers"]), ["a", "b"])
        self.assertAlmostEqual(entry["ratio"], 0.5)
        self.assertFalse(entry["met"])

    def test_memory_bound_nodes_are_found_by_their_operator(self):
        layers = [{"node": "down1.relu0", "bytes": 9e6, "time": {"value": 1e-5}},
                  {"node": "small.relu", "bytes": 9, "time": {"value": 1e-5}},
                  {"node": "loss", "bytes": 9e9, "time": {"value": 1e-5}}]
        nodes = [{"node": "down1.relu0", "op": "Relu", "why": ""},
                 {"node": "small.relu", "op": "Relu", "why": ""},
                 {"node": "loss", "op": "BinaryCrossEntropyWithLogits", "why": ""}]
        _, bars, _ = self.report([
            ("layers_bf16", 0, {"results": [{"nodes": nodes}]}),
            ("step_unet_l", 0, {"results": [{"median": {"value": 0.01}, "layers": layers}]}),
            ("torch", 0, {"copy_bytes_per_second": 1e12})])
        self.assertAlmostEqual(bars["memory-bound Relu beside a device copy, bytes/s"]["ratio"], 0.9)

    def test_counters_must_equal_those_of_ncu(self):
        counted = {"results": [{"counters": [{"global": {"load": {"requests": 8, "sectors": 132}},
                                              "shared": {"load": {"wavefronts": 0}}}]}]}
        table = ('==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Value"\n'
                 '"0","k","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","8"\n'
                 '"0","k","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","{}"\n'
                 '"0","k","l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum","0"\n')
        _, bars, _ = self.report([("counted_naive", 0, counted), ("ncu_naive", 0, table.format(132)),
                                  ("counted_tiled", 0, counted),
                                  ("ncu_tiled", 0, table.format("1,132"))])
        self.assertTrue(bars["counters of naive as ncu's"]["met"])
        self.assertFalse(bars["counters of tiled as ncu's"]["met"])
        self.assertIn("open", bars["counters of coalesced as ncu's"])

    def test_a_phase_that_failed_or_could_not_run_is_recorded_and_is_exit_code_1(self):
        result, _, document = self.report([("build", 0, "ok"), ("conformance", 124, "half"),
                                           ("memcheck", 127, "")])
        self.assertEqual(result.returncode, 1)
        self.assertIn("did not run to their end: conformance, memcheck", result.stdout)
        phases = {phase["name"]: phase for phase in document["phases"]}
        self.assertEqual(phases["memcheck"]["not_run"], "command of memcheck")
        self.assertEqual(phases["conformance"]["printed"], "half")


if __name__ == "__main__":
    main()
