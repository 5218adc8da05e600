"""Whole CUDA programs, unchanged: `triptych kernel run` of the files in programs/."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import unittest

from program_files import PROGRAMS, FilesTest
from support import ALL_CASES, compile_through_ccache, main


class Programs(FilesTest):
    def test_vectors_are_added(self):
        result, kernels = self.program("vector_add.cu", "100")
        self.assertEqual(result["output"], "100 sums are right\n")
        # 100 floats: three warps of 32 lanes and one of 4; a has 13 sectors, and b as many.
        load, store = kernels["vector_add"]["global"]["load"], kernels["vector_add"]["global"]["store"]
        self.assertEqual((load["requests"], load["lanes"], load["sectors"]), (8, 200, 26))
        self.assertEqual((store["requests"], store["lanes"], store["sectors"]), (4, 100, 13))
        launch = result["launches"][0]
        self.assertEqual((launch["line"], launch["grid"], launch["block"]), (37, [1, 1, 1], [256, 1, 1]))

    def test_a_kernel_is_called_through_a_pointer(self):
        result, kernels = self.program("transpose.cu")
        self.assertEqual(result["output"], "naive: 0 wrong, timed\ntiled<0>: 0 wrong, timed\n"
                                           "tiled<1>: 0 wrong, timed\n")
        # 64 rows of warps: a column of a 32 x 32 tile without padding is in one bank.
        store = kernels["naive"]["global"]["store"]
        # The L2 joins the stores of 2,048 floats: it writes each of their sectors to memory once.
        self.assertEqual((store["sectors"], store["l2_sectors"], store["memory_sectors"]), (64 * 32, 64 * 32, 256))
        for name, wavefronts in (("tiled<0>", 64 * 32), ("tiled<1>", 64)):
            self.assertEqual(kernels[name]["shared"]["load"]["wavefronts"], wavefronts)
            self.assertEqual(kernels[name]["global"]["store"]["sectors"], 64 * 4)

    def test_templates_share_dynamic_memory(self):
        result, kernels = self.program("reduction.cu")
        self.assertEqual(result["output"], "int 8386560\ndouble 4193280.0\n")
        self.assertEqual(sorted(kernels), ["reduce<double, 128u>", "reduce<double, 32u>", "reduce<int, 128u>",
                                           "reduce<int, 32u>"])
        self.assertEqual(kernels["reduce<int, 128u>"]["global"]["load"]["sectors"], 4096 * 4 // 32)
        self.assertEqual(kernels["reduce<double, 128u>"]["global"]["load"]["sectors"], 4096 * 8 // 32)

    def test_atomic_operations_count(self):
        result, kernels = self.program("histogram.cu")
        self.assertEqual(result["output"], "0 bins differ, 1 launch\n")
        histogram = kernels["histogram"]
        # 1,024 uchar4: 32 warps of 32 lanes load, and each adds four times.
        self.assertEqual(histogram["global"]["load"]["requests"], 32)
        self.assertEqual(histogram["global"]["load"]["useful_bytes"], 4096)
        self.assertEqual(histogram["shared"]["atomic"]["requests"], 128)
        self.assertEqual(histogram["shared"]["atomic"]["lanes"], 4096)
        self.assertGreaterEqual(histogram["shared"]["atomic"]["contention"], 128)

    def test_constant_and_pitched_memory(self):
        result, kernels = self.program("stencil.cu")
        self.assertEqual(result["output"], "largest error 0\n")
        rows = kernels["(anonymous namespace)::rows"]["global"]
        self.assertEqual((rows["load"]["lanes"], rows["store"]["lanes"]), (5 * 240, 240))

    def test_streams_events_and_pinned_memory(self):
        result, kernels = self.program("streams.cu")
        self.assertEqual(result["output"], "0 wrong, 3 calls, mapped 9, ready\n")
        self.assertEqual(kernels["square"]["launches"], 4)
        self.assertEqual(kernels["square"]["global"]["load"]["lanes"], 4 * 2 * 256)

    def test_managed_memory_holds_objects(self):
        result, kernels = self.program("managed.cu")
        self.assertEqual(result["output"], "sum 30, values -5 -4 -3 -2 -1\n")
        self.assertEqual(kernels["walk"]["global"]["store"]["requests"], 6)

    def test_a_device_is_asked_for(self):
        result, _ = self.program("device_query.cu", "--gpu", "a100")
        self.assertEqual(result["output"], "1 device: NVIDIA A100-SXM4-40GB, compute capability 8.0, 108 "
                                           "multiprocessors, 1024 threads\nblock of 1024, with 64 KiB 2 blocks\n"
                                           "tiled 40016 bytes, 4 blocks\n"
                                           "last 5, cudaSuccess\n")
        self.assertEqual(result["gpu"], "NVIDIA A100-SXM4-40GB")

    def test_parameters_of_every_kind_arrive(self):
        result, kernels = self.program("parameters.cu")
        self.assertEqual(result["output"], "65 1.5 1 3 66 2.5 -7 1 0 250 42 1 -300 1.09951e+12 5 9 255 0.25 "
                                           "-0.125 6 1 \n0 wrong\n")
        self.assertEqual(kernels["many"]["global"]["store"]["lanes"], 21)
        lambdas = [name for name in kernels if name.startswith("for_each<")]
        self.assertEqual(kernels[lambdas[0]]["global"]["store"]["lanes"], 60)

    def test_parameters_may_have_as_many_bytes_as_cuda_allows(self):
        run = self.run_program("kernel", "run", str(PROGRAMS / "large_parameters.cu"), "--json")
        result = json.loads(run.stdout)["results"][0]
        self.assertEqual(result["output"], "right, cudaErrorInvalidConfiguration\n")
        finding, = result["findings"]
        self.assertEqual((finding["line"], finding["call"]), (29, "launch"))
        self.assertIn("32810 bytes of parameters; 32764 are allowed", finding["message"])

    def test_a_benchmark_with_a_loop_on_the_host(self):
        result, kernels = self.program("bfs.cu")
        self.assertEqual(result["output"], "Kernel executed 7 times, 0 wrong\n")
        self.assertEqual((kernels["Kernel"]["launches"], kernels["Kernel2"]["launches"]), (7, 7))
        self.assertEqual(kernels["Kernel2"]["global"]["atomic"]["lanes"], 99)

    def test_threads_may_store_the_same_value(self):
        result, _ = self.program("flags.cu")
        self.assertEqual(result["output"], "14 turns, levels sum to 644, found 1 1\n")
        places = [warning.split(": ", 1) for warning in result["warnings"]]
        self.assertEqual([place.rsplit("/", 1)[1] for place, _ in places],
                         ["flags.cu:14", "flags.cu:15", "flags.cu:30"])
        for _, text in places:
            self.assertIn("All store the same value", text)

    def test_strict_forbids_unordered_stores_of_one_value(self):
        result, finding = self.fault("flags.cu", "--strict")
        self.assertEqual((finding["kind"], finding["line"], result["warnings"]), ("race", 14, []))

    def test_the_function_of_hip_launches_a_template(self):
        result, kernels = self.program("template_launch.hip")
        self.assertEqual(result["output"], "2 119 no error\n")
        self.assertEqual((result["launches"][0]["line"], kernels["scale<3, 2, int>"]["blocks"]), (17, 2))

    def test_variables_are_aligned_behind_shared_and_in_types(self):
        result, _ = self.program("aligned.cu")
        self.assertEqual(result["output"], "0, 16 8 16 32\n")

    def test_a_program_keeps_going_after_races_and_reads_outside(self):
        _, finding = self.fault("keep_going.cu")
        self.assertEqual(finding["kind"], "race")
        run = self.run_program("kernel", "run", str(PROGRAMS / "keep_going.cu"), "--keep-going", "--json")
        self.assertEqual(run.returncode, 1, run.stderr)
        result = json.loads(run.stdout)["results"][0]
        self.assertEqual((result["output"], result["stopped"], result["status"]), ("1 1 2\n1 2\n", "", 0))
        self.assertEqual(result["unlisted_faults"], 0)
        line = {key: self.line_with("keep_going.cu", comment)
                for key, comment in (("store", "different values"), ("read", "read without a barrier"),
                                     ("blocks", "of two blocks"), ("outside", "in front of the array"))}
        found = {(each["kind"], each["line"], each["other_line"]): each["count"] for each in result["findings"]}
        # Threads 1 to 7 of two blocks store after their predecessors have read, and read what those have stored.
        # The second block reads and stores after the first.
        self.assertEqual(found, {("race", line["store"], line["read"]): 14, ("race", line["read"], line["store"]): 14,
                                 ("race", line["blocks"], line["blocks"]): 2,
                                 ("out of bounds", line["outside"], None): 1})
        text = self.run_program("kernel", "run", str(PROGRAMS / "keep_going.cu"), "--keep-going", "--brief").stdout
        self.assertIn("reads element -1 of", text)
        self.assertRegex(text, r"\d+ faults were found, and the run continued")
        self.assertNotIn("nothing wrong", text)

    def test_a_store_outside_ends_a_program_that_keeps_going(self):
        run = self.run_program("kernel", "run", str(PROGRAMS / "keep_going.cu"), "--keep-going", "--json", "write")
        result = json.loads(run.stdout)["results"][0]
        self.assertEqual((run.returncode, result["stopped"]), (1, "a fault of a kernel"))
        kinds = [each["kind"] for each in result["findings"]]
        self.assertEqual((kinds[-1], kinds.count("out of bounds")), ("out of bounds", 1))
        self.assertIn("race", kinds)

    def test_lanes_that_run_last_first_add_as_in_lockstep(self):
        path = str(PROGRAMS / "warp_synchronous.cu")
        outputs = []
        for order in ([], ["--last-first"]):
            run = self.run_program("kernel", "run", path, "--keep-going", *order, "--json")
            result = json.loads(run.stdout)["results"][0]
            self.assertEqual((run.returncode, result["stopped"], result["status"]), (1, "", 0))
            self.assertEqual({each["kind"] for each in result["findings"]}, {"race"})
            outputs.append([int(word) for word in result["output"].split()])
        sums = [sum(range(128 * i, 128 * (i + 1))) for i in range(4)]
        self.assertNotEqual(outputs[0], sums)
        self.assertEqual(outputs[1], sums)

    def test_a_lambda_uses_a_structured_binding(self):
        rows = {each["name"]: each["detail"] for each in self.document("doctor")["results"]}
        clang = rows["clang of kernel run"].removesuffix(" for files that it refuses").split()[-1]
        version = subprocess.run([clang, "-dumpversion"], capture_output=True, text=True, check=True).stdout
        if int(version.split(".")[0]) < 16:
            self.skipTest(f"{clang} refuses structured bindings in lambdas, as all before version 16")
        result, _ = self.program("bindings.cu")
        self.assertEqual(result["output"], "105\n")

    def test_a_header_stands_in_front_of_each_source(self):
        path, words = str(PROGRAMS / "no_header.cu"), ("--source", str(PROGRAMS / "no_header.cpp"))
        run = self.run_program("kernel", "run", path, *words)
        self.assertIn("getpid", run.stderr)
        self.assertNotEqual(run.returncode, 0)
        result, _ = self.program("no_header.cu", "--pre-include", "unistd.h", sources=["no_header.cpp"])
        self.assertEqual(result["output"], "1 1\n")

    def test_gpus_have_memory_streams_and_variables_of_their_own(self):
        result, kernels = self.program("several_gpus.cu", "--gpus", "2")
        # GPU 0 computes 2 * i + 100. GPU 1 doubles this and adds its own bonus of 1.
        self.assertEqual(result["output"], "2 GPUs, peers 1\n4192 8416, current 1, owner 0\nbonus 100 and 1\n1024\n")
        self.assertEqual(kernels["twice"]["launches"], 3)

    def test_memory_of_another_gpu_needs_a_permission(self):
        for mistake, remedy in (("peer", "call cudaSetDevice(1) and cudaDeviceEnablePeerAccess(0, 0) before"),
                                ("pool", "allow it with cudaMemPoolSetAccess for the pool of GPU 0")):
            _, finding = self.fault("several_gpus.cu", mistake, "--gpus", "2")
            self.assertEqual(finding["line"], self.line_with("several_gpus.cu", "memory of a peer"))
            self.assertIn("which is memory of GPU 0, and the kernel runs on GPU 1: " + remedy, finding["message"])

    def test_a_stream_belongs_to_a_gpu(self):
        run = self.run_program("kernel", "run", str(PROGRAMS / "several_gpus.cu"), "stream", "--gpus", "2", "--json")
        result = json.loads(run.stdout)["results"][0]
        finding, = result["findings"]
        self.assertEqual(finding["line"], self.line_with("several_gpus.cu", "of GPU 1"))
        self.assertIn("the stream is of GPU 1, and GPU 0 is the current one", finding["message"])
        self.assertIn("bonus 100 and 1\n", result["output"])

    def test_a_sample_counts_its_blocks_and_runs_the_others(self):
        names = ("fill", "mirror", "wait", "allocate", "release")
        for sample, blocks in ((1, 10), (4, 3), (100, 1)) if ALL_CASES else ((4, 3),):
            result, kernels = self.program("sampled.cu", "--sample", str(sample))
            self.assertEqual((result["output"], result["sample"]), ("0 wrong\n", sample))
            self.assertEqual([kernels[name]["blocks"] for name in names], 5 * [blocks])
            self.assertEqual(kernels["fill"]["global"]["store"]["lanes"], 64 * blocks)
            self.assertEqual(kernels["mirror"]["shared"]["load"]["lanes"], 64 * blocks)
            self.assertEqual(result["launches"][0]["grid"], [10, 1, 1])

    def test_a_sample_finds_races_of_its_blocks_only(self):
        _, finding = self.fault("sampled.cu", "race")
        self.assertEqual((finding["kind"], finding["block"]), ("race", [1, 0, 0]))
        self.program("sampled.cu", "race", "--sample", "2")
        # A crash is a fault of any block.
        _, finding = self.fault("sampled.cu", "null", "--sample", "2")
        self.assertEqual((finding["kernel"], finding["line"], finding["block"]), ("store_behind_null", 52, [1, 0, 0]))

    def test_blocks_outside_of_a_sample_give_the_same_bits(self):
        watched, all_kernels = self.program("unwatched.cu")
        self.assertRegex(watched["output"], "block 4\nblock 5\n[0-9a-f]{16}, 6 visits, 576 turns, 6 flags\n")
        for options in ((), ("--no-contraction",)):
            watched, _ = self.program("unwatched.cu", *options)
            others, kernels = self.program("unwatched.cu", "--sample", "100", *options)
            self.assertEqual(others["output"], watched["output"])
            self.assertEqual([kernels[name]["blocks"] for name in sorted(kernels)], 3 * [1])
        self.assertEqual(all_kernels["compute"]["blocks"], 6)

    def test_mistakes_of_blocks_outside_of_a_sample_end_the_program(self):
        lines = (PROGRAMS / "unwatched.cu").read_text().splitlines()
        kinds = (("assert", "assertion"), ("crash", "out of bounds"), ("endless", "endless"), ("wait", "endless"),
                 ("division", "division"))
        for number, (mark, kind) in enumerate(kinds):
            _, finding = self.fault("unwatched.cu", str(number), "--sample", "100", "--max-steps", "1000")
            self.assertEqual((finding["kernel"], finding["block"], finding["thread"]),
                             ("mistake", [2, 0, 0], [5, 0, 0]))
            self.assertIn(kind, finding["kind"])
            self.assertTrue(lines[finding["line"] - 1].endswith("// " + mark), finding)

    def test_a_sample_goes_on_from_launch_to_launch(self):
        result, kernels = self.program("sampled_launches.cu", "--sample", "7")
        self.assertEqual(result["output"], "10 10\n")
        # One kernel has 30 blocks, of which 0, 7, 14, 21 and 28 are counted. The other has 10: 0 and 7.
        counted = [each["blocks"] for each in result["launches"]]
        self.assertEqual((counted[::2], counted[1::2]),
                         ([1, 0, 1, 0, 1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0]))
        self.assertEqual((kernels["add"]["blocks"], kernels["add"]["launches"]), (5, 10))
        self.assertEqual(kernels["add"]["global"]["store"]["lanes"], 5 * 64)

    def test_a_sample_finds_the_race_of_its_block_in_a_later_launch(self):
        _, finding = self.fault("sampled_launches.cu", "2", "--sample", "7")
        self.assertEqual((finding["kind"], finding["kernel"], finding["block"]), ("race", "add", [1, 0, 0]))
        self.program("sampled_launches.cu", "3", "--sample", "7")

    def test_kernels_of_nvrtc_run_without_instrumentation_outside_of_a_sample(self):
        result, kernels = self.program("nvrtc_sampled.cu", "--sample", "100")
        self.assertEqual((result["output"], kernels["fill"]["blocks"]), ("0 wrong\n", 1))
        # Only code without instrumentation is stopped by time.
        _, finding = self.fault("nvrtc_sampled.cu", "endless", "--sample", "100", "--max-steps", "1000")
        self.assertEqual((finding["kind"], finding["line"]), ("endless", 3))
        self.assertIn("seconds of the processor's time", finding["message"])

    def test_directed_rounding_has_the_bits_of_the_processors_modes(self):
        for options in ((), ("--sample", "100")):
            result, _ = self.program("directed.cu", *options)
            self.assertEqual(result["output"], "0 0 0 different\n")

    def test_subnormal_numbers_are_kept(self):
        for options, blocks in (((), 2), (("--sample", "100"), 1)):
            result, kernels = self.program("subnormals.cu", *options)
            self.assertEqual((result["output"], kernels["halve"]["blocks"]), ("1 1\n1 1\n", blocks))

    def test_products_of_fragments_outside_of_a_sample_are_the_same(self):
        watched, _ = self.program("wmma.cu")
        others, kernels = self.program("wmma.cu", "--sample", "100")
        self.assertEqual((others["output"], kernels["multiply"]["blocks"]), (watched["output"], 1))

    def test_unordered_stores_of_different_values_are_a_race(self):
        _, finding = self.fault("flags.cu", "unequal")
        self.assertEqual((finding["kind"], finding["kernel"], finding["line"], finding["thread"]),
                         ("race", "any_negative", 30, [32, 0, 0]))
        self.assertIn("another thread writes byte 0 of the shared variable found at line 30", finding["message"])

    def test_directed_rounding_and_tiles_of_more_than_a_warp(self):
        result, kernels = self.program("rounding.cu")
        self.assertEqual(result["output"], "0x1p+0 0x1.000002p+0 -0x1.555554p-2 0x1p-23 0x1p-59\n"
                                           "8192 8255, 5 74 404\n1596680831 1045878015\n2.5 caught\n")
        # A value of 16 bytes is two shuffles of each of four warps.
        self.assertEqual(kernels["group"]["warp_operations"], 8)
        self.assertEqual(kernels["group"]["global"]["store"]["lanes"], 128 + 4)

    def test_barriers_and_atomic_objects_of_libcu(self):
        result, kernels = self.program("barriers.cu")
        self.assertEqual(result["output"], "8128, 1 2 3 sum to 6\n")
        self.assertEqual(result["warnings"], [])
        # Each thread arrives once, and one warp looks at the count.
        shared = kernels["sum_warps"]["shared"]
        self.assertEqual((shared["atomic"]["lanes"], shared["atomic"]["requests"]), (128, 4))
        self.assertEqual(kernels["take_turns"]["global"]["atomic"]["lanes"], 6)

    def test_a_number_of_a_wider_type_is_one_access(self):
        result, kernels = self.program("packed.cu")
        self.assertEqual(result["output"], "no error, 3c003c00 93\n")
        loads = kernels["widen"]["shared"]["load"]
        self.assertEqual((loads["requests"], loads["lanes"]), (2, 64))
        # A packed number is read by bytes, unless its address suits its type: one in four.
        self.assertEqual(kernels["unpack"]["global"]["load"]["lanes"], 24 * 4 + 8)

    def test_pipelines_copy_when_they_are_waited_for(self):
        result, kernels = self.program("pipelines.cu")
        self.assertEqual((result["output"], result["warnings"]), ("0 wrong\n", []))
        # Five tiles of 64 float4: a lane copies 16 bytes of global to shared memory.
        loads, stores = kernels["add_tiles"]["global"]["load"], kernels["add_tiles"]["shared"]["store"]
        self.assertEqual((loads["requests"], loads["useful_bytes"]), (10, 5 * 64 * 16))
        self.assertEqual((stores["requests"], stores["lanes"]), (10, 5 * 64))
        self.assertEqual(kernels["share_work"]["shared"]["store"]["lanes"] >= 5 * 64, True)
        # 128 bytes for a barrier and as many for a group: 8 of 64 threads copy 16 of them each.
        self.assertEqual(kernels["reverse"]["global"]["load"]["lanes"], 16)
        groups = kernels["reverse_groups"]
        self.assertEqual(groups["global"]["load"]["useful_bytes"], 64 * (16 + 8))
        self.assertEqual(groups["shared"]["store"]["requests"], 4)

    def test_a_stage_that_nothing_has_waited_for_is_not_there(self):
        _, finding = self.fault("pipelines.cu", "early", "--strict")
        lines = (PROGRAMS / "pipelines.cu").read_text().splitlines()
        self.assertEqual(finding["kind"], "uninitialised memory")
        self.assertTrue(lines[finding["line"] - 1].endswith("// read of a stage"), finding)

    def test_atomic_operations_of_the_host_may_meet_a_kernel(self):
        result, _ = self.program("host_atomics.cu")
        self.assertEqual(result["output"], "74\n")
        _, finding = self.fault("host_atomics.cu", "plain")
        self.assertEqual(finding["line"], 14)
        self.assertIn("call cudaDeviceSynchronize first", finding["message"])

    def test_a_store_behind_an_arrival_is_a_race(self):
        _, finding = self.fault("barriers.cu", "late")
        self.assertEqual((finding["kind"], finding["kernel"], finding["line"]), ("race", "sum_warps", 28))

    def test_files_share_kernels_and_functions(self):
        result, kernels = self.program("two_files.cu", sources=["two_files_device.cu", "two_files_host.cpp"])
        self.assertEqual(result["output"], "first 100\n100 162 0\n")
        self.assertEqual(sorted(kernels), ["start", "start(int*, int, int)"])

    def test_groups_of_threads_work_together(self):
        result, kernels = self.program("warp_groups.cu")
        self.assertEqual(result["output"], "120 376 632 888 2016 47 16 1 1 16 1 0 1 1 1f0 1f f 77441100 18 \n")
        self.assertEqual(kernels["groups"]["global"]["store"]["lanes"], 9)
        # Six turns: each thread stores, and half of the rest load.
        self.assertEqual(kernels["groups"]["shared"]["store"]["lanes"], 6 * 64)
        self.assertEqual(kernels["groups"]["shared"]["load"]["lanes"], 63)

    def test_narrow_floats_are_rounded_as_a_gpu_rounds(self):
        result, kernels = self.program("narrow_floats.cu")
        self.assertEqual(result["output"], "480\n3c00/3f80 3c00/3f80 3c02/3f80 7bff/4780 7c00/4780 0002/33d7 "
                                           "0001/3380 ae66/bdcd 7c00/7f80 03ff/3880 \n")
        load = kernels["dot"]["global"]["load"]  # a half2 is one access
        self.assertEqual((load["requests"], load["useful_bytes"]), (8, 8 * 32 * 4))

    def test_textures_and_surfaces(self):
        result, kernels = self.program("textures.cu")
        self.assertEqual(result["output"], "3 0 9 9.5 12 1.2 8.5 10 3 25 \n255 0 10 255\n6 22 38 54\n")
        # Rows of 16 bytes: two in a sector. A linear filter between two texels reads both.
        load = kernels["sum_rows"]["global"]["load"]
        self.assertEqual((load["requests"], load["lanes"], load["sectors"]), (4, 16, 8))
        self.assertEqual(kernels["read_all"]["global"]["load"]["lanes"], 14)
        self.assertEqual(kernels["invert"]["global"]["store"]["lanes"], 4)

    def test_a_program_of_hip(self):
        result, kernels = self.program("saxpy.hip")
        self.assertEqual(result["output"], "224 on a warp of 32\n")
        self.assertEqual(kernels["saxpy"]["global"]["load"]["lanes"], 200)
        self.assertEqual(kernels["sum"]["warp_operations"], 5)

    def test_graphs_are_made_captured_and_updated(self):
        result, kernels = self.program("graphs.cu")
        self.assertEqual(result["output"], "6 nodes, 2 roots, 2 after; 6 105, 2 calls\n"
                                           "captured 6, updated 14\nleft 0 0, bytes 0 256 0\n")
        # Two launches of two kernels, three of two captured ones. Loops of five turns.
        self.assertEqual((kernels["add"]["launches"], kernels["count_down"]["launches"]), (10, 10))

    def test_blocks_of_a_cooperative_launch_wait_for_each_other(self):
        result, kernels = self.program("grid_barrier.cu")
        self.assertEqual(result["output"], "1 cudaSuccess, 4 8 8 4\n")
        self.assertEqual((kernels["pass_on"]["barriers"], kernels["pass_on"]["blocks"]), (16, 4))

    def test_a_grid_with_more_threads_than_closed_pages_waits_for_all(self):
        result, kernels = self.program("grid_barrier.cu", "crowd")
        self.assertEqual(result["output"], "1 cudaSuccess, 4 8 12 16\n")
        self.assertEqual((kernels["pass_on"]["threads"], kernels["pass_on"]["barriers"]), (32768, 128))

    def test_a_barrier_of_the_grid_needs_all_blocks(self):
        for word, message in (("plain", "launch the kernel with cudaLaunchCooperativeKernel"),
                              ("leaves", "waits for block 1 of the grid, which has ended")):
            _, finding = self.fault("grid_barrier.cu", word)
            self.assertEqual((finding["kernel"], finding["line"]), ("pass_on", 18), finding)
            self.assertIn(message, finding["message"])
        result, finding = self.fault("grid_barrier.cu", "large")
        self.assertIn("cudaErrorCooperativeLaunchTooLarge", result["output"])
        self.assertIn("10000 blocks of a cooperative launch; NVIDIA H100 80GB HBM3 holds 4224 at once",
                      finding["message"])

    def test_kernels_allocate_memory(self):
        result, kernels = self.program("device_heap.cu")
        self.assertEqual(result["output"], "8 MiB, sum 168, full 1\n")
        self.assertEqual(kernels["use"]["global"]["atomic"]["lanes"], 16)

    def test_wrong_uses_of_memory_of_kernels_are_found(self):
        lines = (PROGRAMS / "device_heap.cu").read_text().splitlines()
        for mistake, comment, message in (
                (1, "beyond", "outside of the memory that kernels allocated"),
                (2, "unwritten", "byte 4 of 8 bytes that a kernel allocated, which nothing has written"),
                (3, "freed", "byte 0 of 8 bytes that a kernel allocated and freed"),
                (4, "freed twice", "or that was freed"),
                (5, "on the host", "memory that a kernel allocated; only kernels can use it")):
            _, finding = self.fault("device_heap.cu", str(mistake))
            self.assertTrue(lines[finding["line"] - 1].endswith("// " + comment), finding)
            self.assertIn(message, finding["message"])

    def test_reads_of_unwritten_shared_memory_are_a_warning(self):
        result, _ = self.program("unwritten.cu")
        self.assertEqual(result["output"], "820 2016\n")
        self.assertEqual(len(result["warnings"]), 1)
        self.assertIn("unwritten.cu:18: byte 8 of the shared variable sums was not written", result["warnings"][0])
        _, finding = self.fault("unwritten.cu", "--strict")
        self.assertEqual((finding["kind"], finding["line"]), ("uninitialised memory", 18))

    def test_fragments_are_multiplied_on_the_tensor_cores(self):
        result, kernels = self.program("wmma.cu")
        self.assertEqual(result["output"], "0 wrong\n")
        multiply = kernels["multiply"]
        # Four warps, two steps of k, two tiles: a lane loads 16 bytes of a tile, and stores its 8 floats in two
        # pieces.
        load, store = multiply["global"]["load"], multiply["global"]["store"]
        self.assertEqual((load["requests"], load["lanes"], load["sectors"]), (16, 512, 16 * 16))
        self.assertEqual((store["requests"], store["lanes"], store["sectors"]), (8, 256, 8 * 32))
        self.assertEqual(multiply["matrix_products"], 4 * 2 * 2)  # of 16 x 8 x 16: half of a fragment's

    def test_a_page_has_the_first_launch_of_each_kernel(self):
        command = ["page", "gpu", str(PROGRAMS / "transpose.cu"), "--out", "page.html", "--overwrite"]
        self.succeed(*command, "--kernel", "tiled")
        html = (self.folder / "page.html").read_text()
        record = json.loads(html.split('id="record">')[1].split("</script>")[0])
        self.assertEqual([each["name"] for each in record["versions"]], ["tiled<0>", "tiled<1>"])
        for version, cost in zip(record["versions"], (32, 1)):
            steps = version["warps"][0]["steps"]
            self.assertEqual({each["cost"] for each in steps if each.get("space") == "shared" and each["access"] == "load"},
                             {cost})
        self.expect_error(2, *command, "--kernel", "tilde", says=["none of the chosen kernels, but naive, tiled<0>"])

    def test_a_library_of_cuda_is_named(self):
        (self.folder / "blas.cu").write_text("#include <cublas_v2.h>\nint main() {}\n")
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        for _ in range(2):  # the second compilation finds the headers in the user's cache
            self.expect_error(2, "kernel", "run", "blas.cu", says=["blas.cu:1", "cuBLAS: not emulated"], env=cache)
        self.assertTrue(any(self.folder.glob("cache/triptych/headers/*/backends/cuda/program/prelude.h")))

    def test_a_report_follows_the_programs_output(self):
        text = self.succeed("kernel", "run", str(PROGRAMS / "vector_add.cu"), "64").stdout
        self.assertTrue(text.startswith("64 sums are right\n"), text)
        for word in ("1 launch of 1 kernel on", "vector_add.cu:19", "nothing wrong was found"):
            self.assertIn(word, text)


if __name__ == "__main__":
    compile_through_ccache()
    main()
