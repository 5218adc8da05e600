"""tpu_latencies.py finds no error in times that its own cycles predict, and a known one in others.

  tpu_latencies_test.py MMU_UTILISATION
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import pathlib
import sys
import tempfile
import unittest

import tpu_latencies

PROGRAM = pathlib.Path(sys.argv.pop()).resolve()
PRODUCTS = [(128, 256, 128), (256, 256, 512), (512, 128, 256), (512, 512, 384)]


class Latencies(unittest.TestCase):
    def errors_of(self, times):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "times.csv"
            with open(path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["dim_m", "dim_n", "dim_k", "fusion_avg", "scale_sim_cycles"])
                for index, (product, time) in enumerate(zip(PRODUCTS, times)):
                    writer.writerow([*product, time, index + 1])
            return tpu_latencies.errors(PROGRAM, path)

    def test_cycles_are_at_least_those_of_the_multiply_adds(self):
        for (m, n, k), cycles in zip(PRODUCTS, tpu_latencies.core_cycles(PROGRAM, PRODUCTS)):
            self.assertGreaterEqual(cycles, m * n * k / (tpu_latencies.ARRAYS * 128 * 128))

    def test_four_arrays_share_a_product(self):
        square = [(512, 512, 512)]
        alone = tpu_latencies.cycles_of(PROGRAM, square)[0]
        self.assertLess(tpu_latencies.core_cycles(PROGRAM, square)[0], alone / 2)

    def test_predicted_times_have_no_error(self):
        cycles = tpu_latencies.core_cycles(PROGRAM, PRODUCTS)
        count, direct, fitted, published = self.errors_of([c / 1050 for c in cycles])
        self.assertEqual(count, len(PRODUCTS))
        self.assertAlmostEqual(direct, 0)
        self.assertAlmostEqual(fitted, 0)
        self.assertGreater(published, 1)

    def test_a_constant_and_a_factor_vanish_in_the_line_only(self):
        cycles = tpu_latencies.core_cycles(PROGRAM, PRODUCTS)
        _, direct, fitted, _ = self.errors_of([2 * c / 1050 for c in cycles])
        self.assertAlmostEqual(direct, 50)
        self.assertAlmostEqual(fitted, 0)
        self.assertAlmostEqual(self.errors_of([3 + c / 500 for c in cycles])[2], 0)


unittest.main()
