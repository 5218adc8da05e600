"""Parts of experiments/studies/rivals/gpu_session.sh that need no GPU: what it packs, how it refuses, that nothing is
lost, and what it makes of results."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shlex
import signal
import subprocess
import sys
import time

from support import SOURCE, ProgramTest, main

BENCH = SOURCE / "experiments" / "studies" / "rivals"
sys.path.insert(0, str(BENCH))
import gpu_items  # noqa: E402
import gpu_pack  # noqa: E402
import gpu_report  # noqa: E402

H200 = {"name": "cuda:0", "description": "NVIDIA H200",
        "properties": {"l2_bytes": "50000000", "compute_capability": "9.0"}}


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


def devices(**cuda):
    """A program's line that answers `devices --json` so."""
    row = {"backend": "cuda", "available": True, "libraries": [], "devices": [H200], **cuda}
    document = json.dumps({"environment": {}, "results": [row]})
    return f"[ $1 = devices ] && {{ echo {shlex.quote(document)}; exit 0; }}"


class SessionTest(ProgramTest):
    def make_pack(self, triptych, backend_test="true"):
        """A folder as gpu_pack.make() leaves one, whose programs are these scripts."""
        folder = self.folder / "pack"
        script(folder / "bin/triptych", triptych)
        script(folder / "bin/backend_test", backend_test)
        (folder / "lib").mkdir()
        pack = {"schema": gpu_pack.SCHEMA, "commit": "abc", "architectures": ["sm_90a"], "glibc": "2.2",
                "files": gpu_pack.listed(folder)}
        (folder / "pack.json").write_text(json.dumps(pack))
        return folder

    def environment(self, **tools):
        """One in which these tools are scripts, and PyTorch, ncu and the sanitizer are missing."""
        for name in ("nvidia-smi", "ncu", "compute-sanitizer"):
            script(self.folder / "tools" / name, tools.get(name, "exit 1"))
        if "torch" not in tools:
            (self.folder / "python").mkdir(exist_ok=True)
            (self.folder / "python/torch.py").write_text("raise ImportError('there is no torch')")
        return {**os.environ, "PATH": f"{self.folder}/tools:{os.environ['PATH']}",
                "PYTHONPATH": f"{self.folder}/python", "TMPDIR": str(self.folder),
                "CUDA_VISIBLE_DEVICES": ""}

    def session(self, *arguments, environment=None):
        return subprocess.run(
            [BENCH / "gpu_session.sh", "--out", self.folder / "out", *arguments], text=True,
            capture_output=True, cwd=self.folder, env=environment or self.environment(), timeout=120)

    def document(self):
        path, = (self.folder / "out").glob("gpu-*.json")
        return json.loads(path.read_text())


class Refusals(SessionTest):
    def refused(self, code, program, **tools):
        result = self.session("--prebuilt", self.make_pack(program), "--part", "A",
                              environment=self.environment(**tools))
        self.assertEqual(result.returncode, code, result.stderr)
        document = self.document()
        self.assertEqual(document["state"], "not run")
        self.assertIn(document["why"], result.stderr)
        self.assertEqual({item.name for item in gpu_items.part_a()},
                         {item["name"] for item in document["items"]})
        return document

    def test_a_machine_without_a_gpu_is_exit_code_3_with_the_reason_and_a_whole_document(self):
        document = self.refused(3, devices(available=False, reason="there is no NVIDIA driver"))
        self.assertIn("there is no NVIDIA driver", document["why"])
        self.assertIn("sm_90a", document["why"])
        items = {item["name"]: item for item in document["items"]}
        self.assertEqual(items["devices"]["exit_code"], 0)
        self.assertEqual(items["conformance"]["not_run"], document["why"])
        self.assertEqual(document["commit"], "abc")

    def test_a_driver_that_is_too_old_is_told_with_the_oldest_one(self):
        document = self.refused(3, devices(available=False, reason="older"),
                                **{"nvidia-smi": "echo 535.104.05"})
        self.assertIn("535.104.05 is older than 580", document["why"])

    def test_a_program_that_does_not_start_is_exit_code_4(self):
        document = self.refused(4, "echo 'no version GLIBC_9.9 found' >&2; exit 1")
        self.assertIn("GLIBC_9.9", document["why"])

    def test_a_glibc_that_is_too_old_is_exit_code_4(self):
        folder = self.make_pack(devices())
        pack = json.loads((folder / "pack.json").read_text())
        (folder / "pack.json").write_text(json.dumps({**pack, "glibc": "9.1"}))
        result = self.session("--prebuilt", folder)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("is older than 9.1", result.stderr)

    def test_a_folder_of_another_schema_is_exit_code_2(self):
        folder = self.make_pack(devices())
        pack = json.loads((folder / "pack.json").read_text())
        (folder / "pack.json").write_text(json.dumps({**pack, "schema": 9}))
        result = self.session("--prebuilt", folder)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("schema 9", result.stderr)

    def test_a_folder_that_was_cut_short_is_exit_code_2(self):
        folder = self.make_pack(devices())
        (folder / "bin/backend_test").write_text("")
        result = self.session("--prebuilt", folder)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("backend_test is missing or was cut short", result.stderr)

    def test_nothing_is_built_where_there_is_no_driver(self):
        result = self.session("--build", self.folder / "build")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("there is no NVIDIA driver here", result.stderr)
        self.assertFalse((self.folder / "build").exists())

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in (["--fast"], ["--part", "E"], ["--prebuilt", self.folder / "none"],
                          ["--pack", self.folder / "pack"]):
            self.assertEqual(self.session(*arguments).returncode, 2, arguments)


class Items(SessionTest):
    def test_the_times_of_each_part_add_up_to_less_than_nine_minutes(self):
        for name, part in gpu_items.PARTS.items():
            self.assertLessEqual(sum(item.seconds for item in part()), gpu_items.PART_SECONDS, name)
            names = [item.name for item in part()]
            self.assertEqual(len(names), len(set(names)))
        self.assertLess(gpu_items.PART_SECONDS, 540)

    def test_counters_are_read_at_the_clock_that_is(self):
        commands = [item.command for item in gpu_items.part_d() if item.needs == "ncu"]
        self.assertEqual(len(commands), len(gpu_items.LADDER))
        for command in commands:
            self.assertEqual(command[command.index("--clock-control") + 1], "none")

    def test_the_program_takes_every_command(self):
        """Without a GPU, exit code 3 is all that is wrong with them."""
        for part in gpu_items.PARTS.values():
            for item in part():
                if "triptych" not in item.command or "cuda-emulated" in item.command:
                    continue
                words = item.command[item.command.index("triptych") + 1:]
                words = [word.replace("WORK", str(self.folder)) for word in words]
                environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
                if item.name != "devices" and "cpu,cuda" not in words:
                    result = self.run_program(*words, env=environment)
                    allowed = (0, 3) if "bandwidth" in words else (3,)
                    self.assertIn(result.returncode, allowed, f"{words}\n{result.stderr}")

    def test_what_tools_are_missing_for_is_recorded(self):
        pack = self.make_pack(devices() + "\necho '{}'")
        result = self.session("--prebuilt", pack, "--part", "B", "--part", "D",
                              environment=self.environment(**{"ncu": "exit 0"}))
        self.assertEqual(result.returncode, 1, result.stderr)
        items = {item["name"]: item for item in self.document()["items"]}
        self.assertIn("there is no torch", items["torch_products"]["not_run"])
        self.assertEqual(items["ncu_naive"]["exit_code"], 0)
        self.assertEqual(items["matmul_bf16_hopper"]["exit_code"], 0)
        self.assertEqual(self.document()["parts"], ["B", "D"])

    def test_an_item_that_fails_costs_no_other(self):
        pack = self.make_pack(devices() + "\n[[ $* == *hopper* ]] && kill -SEGV $$\necho '{}'")
        self.assertEqual(self.session("--prebuilt", pack, "--part", "A").returncode, 1)
        items = {item["name"]: item for item in self.document()["items"]}
        self.assertEqual(items["smoke_matmul_bf16_hopper"]["exit_code"], -signal.SIGSEGV)
        self.assertEqual(items["smoke_matmul_f32_naive"]["exit_code"], 0)
        self.assertIn("no test has that name", items["conformance"]["errors"])
        self.assertEqual(self.document()["state"], "finished")


class Interruptions(SessionTest):
    def interrupted_by(self, number):
        """The document of a session that this signal met while its third item hung."""
        pack = self.make_pack(devices() + "\n[[ $* == *tensor-core* ]] && { echo half; sleep 60; }\n"
                              "echo '{}'")
        session = subprocess.Popen(
            [BENCH / "gpu_session.sh", "--out", self.folder / "out", "--prebuilt", pack, "--part",
             "A"], env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(session.kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            paths = list((self.folder / "out").glob("gpu-*.json"))
            if paths and json.loads(paths[0].read_text())["running"] == \
                    "smoke_matmul_bf16_tensor-core":
                break
            time.sleep(0.02)
        session.send_signal(number)
        session.wait(60)
        return self.document()

    def test_a_terminated_session_keeps_what_it_has(self):
        document = self.interrupted_by(signal.SIGTERM)
        self.assertEqual(document["state"], "interrupted")
        self.assertEqual([item["name"] for item in document["items"]],
                         ["devices", "smoke_matmul_bf16_hopper"])

    def test_a_killed_session_does_too(self):
        document = self.interrupted_by(signal.SIGKILL)
        self.assertEqual(document["state"], "running")
        self.assertEqual(document["running"], "smoke_matmul_bf16_tensor-core")
        self.assertEqual(len(document["items"]), 2)

    def test_an_item_that_hangs_is_ended_in_its_time(self):
        pack = self.make_pack(devices() + "\necho half; sleep 60")
        program = f"""
import sys
sys.path.insert(0, {str(BENCH)!r})
import gpu_items, gpu_session
gpu_items.PARTS = {{"A": lambda: [gpu_items.triptych("devices", 20, "devices"),
                                  gpu_items.triptych("hangs", 1, "bench"),
                                  gpu_items.triptych("late", 1, "bench")]}}
gpu_items.PART_SECONDS = 1.5
sys.exit(gpu_session.main(["--prebuilt", {str(pack)!r}, "--out", {str(self.folder / "out")!r}]))
"""
        result = subprocess.run([sys.executable, "-B", "-c", program], env=self.environment(),
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1, result.stderr)
        items = {item["name"]: item for item in self.document()["items"]}
        self.assertEqual(items["hangs"]["exit_code"], 124)
        self.assertEqual(items["hangs"]["printed"], "half\n")
        self.assertEqual(items["late"].get("exit_code", 124), 124)


class Pack(SessionTest):
    def pack(self, folder, ldd):
        build = self.folder / "build"
        for place in gpu_pack.PROGRAMS.values():
            script(build / place, "true")
        (build / "CMakeCache.txt").write_text("TRIPTYCH_CUDA_ARCHITECTURES:STRING=90a-real\n")
        script(self.folder / "tools/strip", 'cp "$3" "$2"')
        script(self.folder / "tools/ldd", ldd)
        script(self.folder / "tools/objdump", "echo ' GLIBC_2.9 GLIBC_2.34 GLIBC_2.4'")
        return subprocess.run([BENCH / "gpu_session.sh", "--pack", folder, "--build", build,
                               "--as-built"], capture_output=True, text=True, timeout=60,
                              env={**os.environ,
                                   "PATH": f"{self.folder}/tools:{os.environ['PATH']}"})

    def test_it_holds_what_a_bare_machine_lacks_and_lists_it(self):
        (self.folder / "libdemo.so.1").write_text("demo")
        folder = self.folder / "packed"
        result = self.pack(folder, f"echo ' libdemo.so.1 => {self.folder}/libdemo.so.1 (0x1)'\n"
                           "echo ' libc.so.6 => /lib/libc.so.6 (0x1)'\n"
                           "echo ' libcuda.so.1 => /lib/libcuda.so.1 (0x1)'")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([path.name for path in (folder / "lib").iterdir()], ["libdemo.so.1"])
        self.assertIn("lib/libdemo.so.1", result.stdout)
        pack = json.loads((folder / "pack.json").read_text())
        self.assertEqual((pack["glibc"], pack["architectures"]), ("2.34", ["sm_90a"]))
        self.assertRegex(pack["commit"], "^[0-9a-f]{40}|unknown")
        self.assertEqual(gpu_pack.read(folder)["files"], pack["files"])
        self.assertEqual(self.pack(folder, "true").returncode, 0)  # again
        (folder / "results").mkdir()
        (folder / "results/gpu-x.json").write_text("{}")
        self.assertEqual(self.pack(folder, "true").returncode, 2)
        self.assertTrue((folder / "results/gpu-x.json").exists())

    def test_a_library_that_the_program_should_look_for_is_refused(self):
        result = self.pack(self.folder / "packed", "echo ' libcudnn.so.9 => /x/libcudnn.so.9 (0x1)'")
        self.assertEqual(result.returncode, 2)
        self.assertIn("is linked with libcudnn.so.9", result.stderr)

    def test_other_files_are_not_replaced(self):
        folder = self.folder / "mine"
        folder.mkdir()
        (folder / "letter").write_text("dear")
        result = self.pack(folder, "true")
        self.assertEqual(result.returncode, 2)
        self.assertIn("holds other files", result.stderr)
        self.assertEqual((folder / "letter").read_text(), "dear")


def row(name, seconds):
    return {"name": name, "median": {"value": seconds}}


def said(**seconds):
    """Output of torch_rivals.py, cut in a line by a time-out."""
    lines = [{"name": name, "seconds": value} for name, value in seconds.items()]
    return "\n".join(map(json.dumps, lines)) + '\n{"name": "cut'


class Bars(ProgramTest):
    def bars(self, part, items, **machine):
        document = {"parts": [part], "machine": {"devices": [H200], **machine},
                    "items": [{"name": name, "exit_code": 0,
                               ("printed" if isinstance(value, str) else "result"): value}
                              for name, value in items.items()]}
        return {bar["what"]: bar for bar in gpu_report.bars(document)}

    def test_products_are_judged_by_rivals_that_round_and_that_do_not(self):
        bars = self.bars("B", {
            "matmul_bf16_hopper": {"results": [row("matmul/4096x4096x4096", 1.1)]},
            "matmul_bf16_tensor-core": {"results": [row("matmul/4096x4096x4096", 2.0)]},
            "matmul_bf16_cublaslt": {"results": [row("matmul/4096x4096x4096", 1.0)]},
            "torch_products": said(matmul_bf16_4096=0.55, matmul_bf16_rounding_4096=1.21)})
        self.assertTrue(bars["bf16 product 4096 beside cuBLASLt in the same program, 1/s"]["met"])
        there = bars["bf16 product 4096 beside torch.matmul of operands that are there in bfloat16,"
                     " 1/s"]
        self.assertAlmostEqual(there["ratio"], 0.5)
        self.assertFalse(there["met"])
        self.assertAlmostEqual(bars["bf16 product 4096 beside torch.matmul that rounds float32 "
                                    "operands first, 1/s"]["ratio"], 1.1)
        self.assertIn("open", bars["f32 product 4096 beside torch.matmul in float32, 1/s"])

    def test_attention_stands_beside_the_kernel_of_its_length(self):
        bars = self.bars("B", {
            "attention_flash-tensor-core": {"results": [row("attention/16x1024x128", 2.0)]},
            "torch_attention": said(attention_bf16_1024=1.0, attention_bf16_128=9.0)})
        entry = bars["attention/16x1024x128 by flash-tensor-core beside PyTorch's in bf16, 1/s"]
        self.assertAlmostEqual(entry["ratio"], 0.5)

    def test_every_layer_is_judged_and_the_worst_counts(self):
        def node(name, op, why, size=3):
            return {"node": f"{name}+relu", "stands_for": [name, "relu"], "why": why,
                    "op": f"{op}(kernel_shape=[{size}, {size}])"}
        bars = self.bars("C", {"layers_bf16": {"results": [{"nodes": [
            node("a.conv0", "Conv", "measured now: implicit 12 us, cudnn: needs more, hopper 11 us"),
            node("b.conv0", "Conv", "measured before: implicit 20.5 us, cudnn-nhwc 1.025e+01 us"),
            node("grad.a.conv0.convtranspose", "ConvTranspose", "measured now: hopper 10 us"),
            node("grad.a.conv0.convweightgradient", "ConvWeightGradient",
                 "measured now: tensor-core 10 us"),
            node("head", "Conv", "measured now: implicit 9 us, cudnn-nhwc 1 us", size=1)]}]},
            "torch_convolutions": said(**{"conv_bf16_a.conv0_forward": 11e-6,
                                          "conv_bf16_b.conv0_forward": 8.2e-6,
                                          "conv_bf16_a.conv0_data": 9e-6,
                                          "conv_bf16_a.conv0_weights": 4e-6})})
        found = {what.split(", ")[1]: bar for what, bar in bars.items() if "bf16 3x3" in what}
        self.assertEqual({name: round(ratio, 3) for name, ratio in
                          found["forward"]["layers"].items()}, {"a.conv0": 1.0, "b.conv0": 0.4})
        self.assertAlmostEqual(found["forward"]["ratio"], 0.4)
        self.assertEqual(found["forward"]["layers_met"], 1)
        self.assertTrue(found["data"]["met"])
        self.assertFalse(found["weights"]["met"])

    def test_bytes_are_those_that_the_algorithm_moves_of_tensors_that_exceed_the_cache(self):
        names = {"relu": "Relu", "bn": "BatchNormalization(epsilon=1e-05)", "small": "Relu",
                 "grad.bn": "BatchNormalizationGradient(activation=relu)", "loss": "MatMul"}
        layers = [{"node": name, "bytes": 9e6 if name == "small" else 300e6,
                   "time": {"value": 1e-3}} for name in names]
        nodes = [{"node": name, "op": op, "why": ""} for name, op in names.items()]
        bars = self.bars("C", {
            "layers_bf16": {"results": [{"nodes": nodes}]},
            "step_unet_l": {"results": [{**row("step", 0.01), "layers": layers}]},
            "bandwidth": {"results": [{"levels": [
                {"level": "L2", "copy": {"value": 9e12}},
                {"level": "memory", "copy": {"value": 6e11}}]}]},
            "torch_copy": json.dumps({"name": "copy", "seconds": 1, "bytes": 5e11})})
        ratios = {what.split()[1]: bar for what, bar in bars.items() if "memory-bound" in what}
        self.assertEqual(set(ratios), {"Relu", "BatchNormalization", "BatchNormalizationGradient"})
        self.assertEqual(list(ratios["Relu"]["layers"]), ["relu"])
        self.assertAlmostEqual(ratios["Relu"]["ratio"], 0.5)
        self.assertAlmostEqual(ratios["BatchNormalization"]["ratio"], 1.0)
        self.assertAlmostEqual(ratios["BatchNormalizationGradient"]["ratio"], 5 / 6)

    def test_steps_stand_beside_eager_and_compiled_ones(self):
        bars = self.bars("C", {"step_unet_l": {"results": [row("step", 0.010)]},
                               "torch_eager": said(unet_l_eager=0.014)})
        self.assertAlmostEqual(
            bars["unet-l step, batch 8, bf16, beside PyTorch eager, 1/s"]["ratio"], 1.4)
        self.assertIn("open", bars["unet-l step, batch 8, bf16, beside torch.compile, 1/s"])

    def test_why_a_bar_is_open_is_told(self):
        document = {"parts": ["C"], "machine": {}, "items": [
            {"name": "torch_compiled", "not_run": "there is no torch"}]}
        entry = [bar for bar in gpu_report.bars(document) if "torch.compile" in bar["what"]][0]
        self.assertEqual(entry["open"], "torch_compiled: there is no torch")

    def test_counters_must_equal_those_of_ncu(self):
        counted = {"results": [{"counters": [{"global": {"load": {"requests": 8, "sectors": 132}},
                                              "shared": {"load": {"wavefronts": 0}}}]}]}
        table = ('==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Value"\n'
                 '"0","k","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","8"\n'
                 '"0","k","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","{}"\n'
                 '"0","k","l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum","0"\n')
        bars = self.bars("D", {"counted_naive": counted, "ncu_naive": table.format(132),
                               "counted_tiled": counted, "ncu_tiled": table.format("1,132")})
        self.assertTrue(bars["counters of naive as ncu's"]["met"])
        self.assertFalse(bars["counters of tiled as ncu's"]["met"])
        self.assertIn("open", bars["counters of coalesced as ncu's"])


if __name__ == "__main__":
    main()
