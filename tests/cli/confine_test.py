"""The option --confine: kernels and RTL of others on copies of their inputs, and its refusal where
a layer is missing. A seed through a pipe, and submissions with links."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import platform
import shutil
import struct
import subprocess
import unittest

import support
from support import PROGRAM, SOURCE, ProgramTest

KERNEL = """
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""
PROGRAM_WITH_MAIN = """
#include <cstdio>
__global__ void zero(int* x) { x[threadIdx.x] = 0; }
int main() {
  int* x;
  cudaMalloc(&x, 64 * sizeof(int));
  zero<<<1, 64>>>(x);
  cudaFree(x);
  puts("ended");
}
"""
SPY = """
#include <cstdio>
__global__ void twice(const float* x, float* y, int n) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    FILE* file = std::fopen("%s", "r");
    for (int i = 0; i < n; ++i) y[i] = file ? 1 : 0;
    if (file) std::fclose(file);
  }
}
"""
ADD_RULE, CREATE_RULESET, RESTRICT, UNSHARE = 445, 444, 446, 272


def npy(values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(
        f"<{len(values)}f", *values)


def values_of(path):
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - start) // 4}f", data[start:]))


def without_landlock():
    """Takes Landlock and namespaces from this process and its children, as an old kernel does."""
    code = [(0x20, 0, 0, 0)]  # load the call's number
    for call in (CREATE_RULESET, ADD_RULE, RESTRICT, UNSHARE):
        code += [(0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | 38)]  # ENOSYS
    code.append((0x06, 0, 0, 0x7FFF0000))
    raw = b"".join(struct.pack("<HBBI", *each) for each in code)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    program = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


has_gpp = unittest.skipUnless(shutil.which("g++"), "no g++")


class Kernels(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "x.npy").write_bytes(npy([1, 2, 3, 4]))
        (self.folder / "expected.npy").write_bytes(npy([2, 4, 6, 8]))
        (self.folder / "twice.cu").write_text(KERNEL)
        self.command = ["kernel", "run", "twice.cu", "x.npy", "f32:4", "4", "--block", "4", "--expect",
                        "expected.npy"]

    @has_gpp
    def test_a_confined_kernel_gives_the_same_document(self):
        plain = self.document(*self.command)["results"][0]
        confined = self.document(*self.command, "--out", "y.npy", "--confine")["results"][0]
        layers = confined.pop("confinement")
        self.assertEqual(confined, plain)
        self.assertEqual(values_of(self.folder / "y.npy"), [2, 4, 6, 8])
        self.assertIn("files", [layer["layer"] for layer in layers])
        for layer in layers:
            self.assertEqual(layer["active"], layer["mechanism"] is not None, layer)

    @unittest.skipUnless(shutil.which("g++") and shutil.which("clang++"), "no g++ or no clang++")
    @unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ, "kernels raise signals that a sanitizer takes for ours")
    def test_a_confined_program_gives_the_same_document(self):
        (self.folder / "all.cu").write_text(PROGRAM_WITH_MAIN)
        plain = self.document("kernel", "run", "all.cu")["results"][0]
        confined = self.document("kernel", "run", "all.cu", "--confine")["results"][0]
        self.assertEqual(plain["output"], "ended\n")
        confined.pop("confinement")
        self.assertEqual(confined, plain)

    @has_gpp
    def test_a_confined_kernel_reads_nothing_else(self):
        (self.folder / "secret").write_text("secret")
        (self.folder / "twice.cu").write_text(SPY % (self.folder / "secret"))
        command = [*self.command[:-2], "--out", "y.npy", "--overwrite"]
        self.succeed(*command)
        self.assertEqual(values_of(self.folder / "y.npy"), [1, 1, 1, 1])  # the control
        result = self.succeed(*command, "--confine")
        self.assertEqual(values_of(self.folder / "y.npy"), [0, 0, 0, 0])
        self.assertIn("confined: ", result.stdout)

    @has_gpp
    def test_a_confined_compiler_includes_nothing_else(self):
        (self.folder / "header.h").write_text("\n")
        (self.folder / "twice.cu").write_text('#include "header.h"\n' + KERNEL)
        self.succeed(*self.command)
        self.expect_error(2, *self.command, "--confine", says="header.h")
        self.succeed(*self.command, "--include", ".", "--confine")

    @has_gpp
    def test_a_source_tree_that_only_root_may_enter_is_no_obstacle(self):
        program = shutil.copy(PROGRAM, self.folder / "triptych")
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=700 none "$0" && exec "$@"', SOURCE]
        if os.geteuid() != 0 or subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user may not mount")
        result = subprocess.run([*hidden, program, *self.command, "--confine"], cwd=self.folder, capture_output=True,
                                text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "the filter has numbers of x86-64")
    def test_required_refuses_without_landlock(self):
        self.expect_error(3, *self.command, "--confine", "required", preexec_fn=without_landlock,
                          says=["files: the kernel has no Landlock", "leave out the word required"])

    def test_wrong_words_and_places_are_refused(self):
        self.expect_error(2, *self.command, "--confine=perhaps", says="available, required")
        self.expect_error(2, "machine", "build", "mmu4", "--confine", says="--rtl")


@unittest.skipUnless(all(map(shutil.which, ("verilator", "make", "g++"))), "verilator is missing")
class Modules(ProgramTest):
    def test_a_failed_build_names_a_log_that_stays(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.succeed("machine", "rtl", "mmu_pe", "--out", "my_rtl")
        module = self.folder / "my_rtl/mmu_pe.sv"
        module.write_text(module.read_text().replace("act_q <= act_i;", "act_q <= act_x;"))
        build = ("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick")
        plain = self.run_program(*build, env=environment)
        [log] = (self.folder / "cache").rglob("*.log")
        log.unlink()
        for _ in range(2 if support.ALL_CASES else 1):
            confined = self.run_program(*build, "--confine", env=environment)
            self.assertEqual(confined.returncode, plain.returncode, confined.stderr)
            self.assertIn(f"the whole log: {log}", confined.stderr)
            self.assertEqual(list((self.folder / "cache").rglob("*.log")), [log])
            self.assertIn("act_x", log.read_text())


class Labs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.succeed("lab", "start", "3", "--out", "lab")
        self.lab = self.folder / "lab"

    def check(self, *arguments, **options):
        result = self.run_program("lab", "check", "3", "lab", "--without-predictions", "--json",
                                  *arguments, **options)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        return json.loads(result.stdout)["results"][0]

    def test_a_seed_comes_through_a_pipe(self):
        command = [PROGRAM, "lab", "check", "3", "lab", "--without-predictions", "--json", "--seed", "-"]
        result = subprocess.run(command, cwd=self.folder, input="77\n", capture_output=True, text=True)
        self.assertEqual(json.loads(result.stdout)["results"][0]["seed"], 77, result.stderr)
        for text in ("", "x\n", "-1\n", "7 7\n"):
            result = subprocess.run(command, cwd=self.folder, input=text, capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn("on a line of standard input", result.stderr)

    def test_a_check_names_its_layers(self):
        report = self.check()
        self.assertGreaterEqual(len(report["confinement"]), 4)
        self.succeed("lab", "list")
        if all(layer["active"] for layer in report["confinement"]):
            self.check("--confine", "required")

    @unittest.skipUnless(platform.machine() == "x86_64", "the filter has numbers of x86-64")
    def test_required_refuses_to_grade(self):
        self.expect_error(3, "lab", "check", "3", "lab", "--without-predictions", "--confine", "required",
                          preexec_fn=without_landlock, says="files: the kernel has no Landlock")

    def secret_in(self, make):
        """Whether a check shows the secret that `make` puts in the place of product.s."""
        secret = self.folder / "secret"
        secret.write_text("SECRET_OF_THE_LECTURER\n")
        os.remove(self.lab / "product.s")
        make(secret, self.lab / "product.s")
        result = self.run_program("lab", "check", "3", "lab", "--without-predictions")
        return "SECRET_OF" in result.stdout + result.stderr

    def test_links_of_a_submission_are_not_read(self):
        self.assertTrue(self.secret_in(shutil.copy))  # the control: the message quotes the line
        self.assertFalse(self.secret_in(lambda secret, file: file.symlink_to(secret)))
        self.assertFalse(self.secret_in(lambda secret, file: file.hardlink_to(secret)))

    @unittest.skipUnless(os.geteuid() == 0, "only root has rights to give up")
    def test_root_reads_with_the_rights_of_the_owner(self):
        for path in (self.folder, self.lab, *self.lab.iterdir()):
            os.chown(path, 60001, 60001)

        def put(secret, file):
            shutil.copy(secret, file)
            os.chown(file, 0, 0)
            os.chmod(file, 0o600)
        self.assertFalse(self.secret_in(put))


if __name__ == "__main__":
    support.main()
