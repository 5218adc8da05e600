"""Programs of CUDA's driver API and of NVRTC, unchanged: `triptych kernel run` of files in programs/."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import unittest

from support import SOURCE, ProgramTest, compile_through_ccache, main

PROGRAMS = SOURCE / "tests" / "cli" / "programs"


def line_of(name, text, number=0):
    """The line of the file with this text, or the next such line."""
    lines = (PROGRAMS / name).read_text().split("\n")
    return [i + 1 for i, line in enumerate(lines) if text in line][number]


@unittest.skipIf(shutil.which("g++") is None or shutil.which("clang++") is None,
                 "g++ or clang++ is not installed")
@unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ,
                 "kernels are not instrumented, and raise signals that a sanitizer takes for ours")
class Driver(ProgramTest):
    def result(self, code, name, *words):
        run = self.run_program("kernel", "run", str(PROGRAMS / name), *words, "--json")
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return json.loads(run.stdout)["results"][0]

    def test_a_module_is_built_and_loaded(self):
        kernels = str(PROGRAMS / "driver_module_kernels.cu")
        built = self.document("kernel", "build", kernels, "--module", "--out", "kernels.fatbin")["results"][0]
        self.assertEqual((built["file"], built["library"]), (kernels, "kernels.fatbin"))
        self.assertTrue((self.folder / "kernels.fatbin").read_text().startswith("// Triptych module 1: code for"))
        result = self.result(0, "driver_module.cpp", "kernels.fatbin")
        self.assertEqual((result["findings"], result["status"]), ([], 0))
        self.assertEqual(result["output"], "NVIDIA H100 80GB HBM3, 1024 threads\n20 110, 6 calls, timed\n"
                                           "rows 29.5 93.5 157.5\n")
        counters = {each["kernel"]: each for each in result["kernels"]}
        smooth = counters["smooth"]["global"]
        # 100 threads read four floats each, and thread 0 counts the calls.
        self.assertEqual((smooth["load"]["lanes"], smooth["store"]["lanes"]), (401, 101))
        lines = {each["line"] for each in counters["smooth"]["lines"] if each["file"].endswith("kernels.cu")}
        self.assertIn(line_of("driver_module_kernels.cu", "sum += weights[k]"), lines)
        self.assertEqual(counters["sum_rows"]["shared"]["store"]["lanes"], 24)
        launch = [each for each in result["launches"] if each["kernel"] == "smooth"][0]
        self.assertEqual((launch["line"], launch["grid"], launch["block"]),
                         (line_of("driver_module.cpp", "cuLaunchKernel(kernel, 2"), [2, 1, 1], [64, 1, 1]))

        fault = self.result(1, "driver_module.cpp", "kernels.fatbin", "race")["findings"][0]
        self.assertEqual((fault["kind"], fault["kernel"], fault["line"]),
                         ("race", "race", line_of("driver_module_kernels.cu", "last = threadIdx.x")))

        self.succeed("kernel", "build", kernels, "--module", "--gpu", "rtx-4090", "--out", "new.fatbin")
        old = self.result(1, "driver_module.cpp", "new.fatbin", "--gpu", "a100")
        self.assertIn("NO_BINARY_FOR_GPU", old["output"])
        self.assertIn("was built for compute capability 8.9", old["findings"][0]["message"])
        (self.folder / "cut.fatbin").write_text((self.folder / "kernels.fatbin").read_text()[:4000])
        self.assertIn("the module is damaged",
                      self.result(1, "driver_module.cpp", "cut.fatbin")["findings"][0]["message"])

    def test_a_module_needs_a_file(self):
        kernels = str(PROGRAMS / "driver_module_kernels.cu")
        self.expect_error(2, "kernel", "build", kernels, "--module", says=["--module", "--out"])

    def test_nvrtc_compiles_a_template(self):
        result = self.result(0, "nvrtc_templates.cu")
        self.assertEqual((result["findings"], result["output"]),
                         ([], "NVRTC_SUCCESS\nfloat 4.5 4.5\ndouble 6 6\n14 8 // Triptych modul\n"))
        counters = {each["kernel"]: each for each in result["kernels"]}
        self.assertEqual(sorted(counters), ["scale<double, 4>", "scale<float, 3>"])
        scale = counters["scale<float, 3>"]
        self.assertEqual((scale["global"]["load"]["lanes"], scale["global"]["atomic"]["lanes"]), (50, 1))
        self.assertEqual({(each["file"].rsplit("/", 1)[-1], each["line"]) for each in scale["lines"]},
                         {("scale.cu", 14), ("scale.cu", 15)})

    def test_errors_of_nvrtc_name_the_line_of_the_source(self):
        result = self.result(1, "nvrtc_templates.cu", "broken")
        self.assertEqual((result["findings"], result["status"]), ([], 3))
        self.assertTrue(result["output"].startswith("NVRTC_ERROR_COMPILATION\nscale.cu:17:13: error: "),
                        result["output"])

    def test_a_program_of_hip_compiles_a_kernel(self):
        result = self.result(0, "modules.hip")
        self.assertEqual((result["findings"], result["output"]), ([], "no error, 4.5 4.5\n"))
        self.assertEqual(result["kernels"][0]["global"]["load"]["lanes"], 2 * 80)

    def test_contexts_mapped_memory_and_textures(self):
        result = self.result(0, "driver_contexts.cpp")
        self.assertEqual((result["findings"], result["output"]),
                         ([], "39 139, 199, 4, no context, 0 bytes in use, compression 1 1\n"))
        self.assertTrue(self.result(0, "driver_contexts.cpp", "--gpu", "t4")["output"].endswith("compression 0 0\n"))
        counters = {each["kernel"]: each for each in result["kernels"]}
        self.assertEqual((counters["fill"]["launches"], counters["fill"]["global"]["store"]["lanes"]), (3, 280))
        self.assertEqual(counters["turn"]["global"]["load"]["lanes"], 16)

    def test_mistakes_of_the_host_are_reported(self):
        result = self.result(1, "driver_mistakes.cu")
        self.assertEqual(result["output"], "1\n")
        at = lambda text, number=0: line_of("driver_mistakes.cu", text, number)
        expected = [
            ("cuDeviceGetCount", at("// no cuInit"), "call cuInit(0)"),
            ("cuMemAlloc", at("// no context"), "this thread has no context"),
            ("cuCtxCreate", at("0, 3)"), "there is no device 3"),
            ("cuCtxSetCurrent", at("// destroyed", 1), "the context of cuCtxCreate ("),
            ("cuMemFree", at("freed with its context"), "is freed, but it was freed at"),
            ("cuModuleLoadData", at(".version 8.0"), "no module of Triptych, but PTX"),
            ("cuModuleLoadData", at("177ELF"), "machine code for a GPU"),
            ("cuModuleLoad", at("absent.fatbin"), "kernel build FILE.cu --module --out absent.fatbin"),
            ("cuMemcpyHtoD", at("&value, 400"), "400 bytes are copied, and the destination has 16"),
            ("cuMemsetD32", at("x + 2"), "not a multiple of the 4 bytes"),
            ("nvrtcGetPTXSize", at("before the compilation"), "call nvrtcCompileProgram first"),
            ("nvrtcCompileProgram", at("1, unknown"), 'the option "--unknown-option=3" is not emulated'),
            ("nvrtcGetPTXSize", at("// destroyed"), "was not created, or was destroyed"),
            ("cuModuleGetFunction", at('"fil"'), 'has no kernel "fil"; its kernels are fill'),
            ("cuModuleGetGlobal", at('"limits"'), 'has no variable "limits"; its variables are limit'),
            ("cuLaunchKernel", at("nullptr, missing"), "fill has 2 parameters, and the address of number 2"),
            ("cuLaunchKernel", at("nullptr, nullptr, extra"), "have 12 bytes, and the buffer has 8"),
            ("cuLaunchKernel", at("2000"), "has 2000; at most 1024"),
            ("cuLaunchKernel", at("nullptr, given", 1), "belongs to the module of fill.cu, which was unloaded"),
            ("cuLaunchKernel", at("CUfunction>(module)"), "the handle is no kernel"),
            ("cuModuleGetFunction", at('module, "fill")', 1), "the module of fill.cu was unloaded at"),
            ("cuMemMap", at("cuMemMap"), "no part of one range of cuMemAddressReserve"),
            ("cuStreamDestroy", at("0x77"), "the stream was not created"),
            ("cuMemFree", at("cuMemFree(x);", 2), "is freed, but it was freed at"),
            ("cuMemcpyHtoD", at("printf"), "was freed at"),
        ]
        for finding, (call, line, text) in zip(result["findings"], expected):
            self.assertEqual((finding["call"], finding["line"]), (call, line), finding)
            self.assertIn(text, finding["message"])
        self.assertEqual(len(result["findings"]), len(expected))


if __name__ == "__main__":
    compile_through_ccache()
    main()
