"""PyTorch's side of a GPU session, rehearsed on the processor: each part says a time for each of its
names, or why there is none.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RIVALS = SOURCE / "experiments/studies/rivals/torch_rivals.py"
# Beginnings of what Debian 12's PyTorch 1.13 says that it lacks, and newer ones on a processor.
MISSING = ("No module named 'torch.nn.attention'", "module 'torch' has no attribute 'compile'",
           "No viable backend for scaled_dot_product_attention")

try:
    import torch  # noqa: F401
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)


class Rehearsal(unittest.TestCase):
    def lines(self, part):
        run = subprocess.run([sys.executable, "-B", RIVALS, part, "--rehearse"], text=True,
                             capture_output=True, check=True, timeout=120)
        versions, *lines = map(json.loads, run.stdout.splitlines())
        self.assertEqual(versions["name"], "versions")
        for line in lines:
            if "problem" in line:
                self.assertTrue(line["problem"].startswith(MISSING), line)
            else:
                self.assertGreater(line["seconds"], 0, line)
        return [line["name"] for line in lines]

    def test_products(self):
        self.assertEqual(self.lines("products"), [
            "matmul_bf16_4096", "matmul_bf16_rounding_4096", "matmul_bf16_8192",
            "matmul_bf16_rounding_8192", "matmul_f32_4096"])

    def test_attention(self):
        self.assertEqual(self.lines("attention"), [
            f"attention_{dtype}_{length}" for length in (1024, 2048, 4096, 8192)
            for dtype in ("bf16", "f32")])

    def test_copy(self):
        self.assertEqual(self.lines("copy"), ["copy"])

    def test_convolutions(self):
        names = self.lines("convolutions")
        self.assertEqual(len(set(names)), 2 * 18 * 3)
        self.assertIn("conv_bf16_bottom.conv1_weights", names)

    def test_steps(self):
        self.assertEqual(self.lines("eager"), ["unet_l_eager", "unet_s_eager"])
        self.assertEqual(self.lines("compiled"), ["unet_l_compiled", "unet_s_compiled"])


if __name__ == "__main__":
    unittest.main()
