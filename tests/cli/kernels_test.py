"""Which kernel runs a node: forced by name, taken from the table, or chosen by measured times."""
# SPDX-License-Identifier: Apache-2.0
import os
import re

from support import ProgramTest, main

# Large enough for both of the emulated GPU's matrix products.
MLP = ["--model", "mlp", "--base", "128", "--depth", "1", "--size", "16", "--batch", "128",
       "--mode", "infer"]
EMULATED = [*MLP, "--backend", "cuda-emulated"]


class Kernels(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.cache = self.folder / "cache" / "triptych" / "kernels.json"

    def matmuls(self, *arguments):
        """(kernel, why) of each matrix product that `explain` lists, and what it warned of."""
        result = self.succeed("explain", *arguments, env=self.environment)
        rows = [re.split(r"  +", line.strip()) for line in result.stdout.splitlines()]
        products = [(row[3], row[-1]) for row in rows if len(row) > 4 and row[1] == "MatMul"]
        self.assertTrue(products, result.stdout)
        return products, result.stderr

    def test_a_kernel_is_forced_by_its_name(self):
        products, _ = self.matmuls(*EMULATED, "--kernel", "naive")
        self.assertEqual({kernel for kernel, _ in products}, {"naive"})

    def test_without_a_gpu_the_table_decides(self):
        products, _ = self.matmuls(*EMULATED)
        self.assertNotIn("measured", " ".join(why for _, why in products))
        self.assertFalse(self.cache.exists())

    def test_a_kernel_that_nobody_has_is_answered_with_those_there_are(self):
        for name in ("warp", "library"):
            self.expect_error(2, "explain", *EMULATED, "--kernel", name,
                              says=[f'"{name}"', "own", "naive", "register-tiled"])
        self.expect_error(2, "explain", *EMULATED, "--choice", "best",
                          says=['"best"', "measured, table, auto"])

    def test_measured_times_are_kept_and_told(self):
        first, warned = self.matmuls(*EMULATED, "--choice", "measured")
        self.assertEqual(warned, "")
        self.assertIn("measured now", " ".join(why for _, why in first))
        self.assertTrue(self.cache.exists())
        again, _ = self.matmuls(*EMULATED, "--choice", "measured")
        text = " ".join(why for _, why in again)
        self.assertIn("measured before", text)
        self.assertNotIn("measured now", text)
        self.assertEqual([kernel for kernel, _ in again], [kernel for kernel, _ in first])

    def test_a_damaged_cache_is_told_of_and_replaced(self):
        self.cache.parent.mkdir(parents=True)
        self.cache.write_text("{")
        _, warned = self.matmuls(*EMULATED, "--choice", "measured")
        self.assertIn(f'NOTE: the cache "{self.cache}" is ignored', warned)
        _, warned = self.matmuls(*EMULATED, "--choice", "measured")
        self.assertEqual(warned, "")


if __name__ == "__main__":
    main()
