# SPDX-License-Identifier: Apache-2.0
"""The soak's measure of growth: leaks count, warming up and short peaks do not."""
import unittest

from soak_test import Series


def series(unit, values):
    return Series("x", unit, samples=[(10.0 * i, float(value)) for i, value in enumerate(values)])


class Growth(unittest.TestCase):
    def test_a_leak_in_every_round_counts(self):
        self.assertTrue(series("descriptors", range(40)).grows())
        self.assertTrue(series("MiB", [100 + 0.2 * i for i in range(40)]).grows())

    def test_a_leak_in_every_fourth_sample_counts(self):
        self.assertTrue(series("files", [i // 4 for i in range(40)]).grows())

    def test_growth_is_that_of_the_second_half(self):
        self.assertAlmostEqual(series("MiB", [3 * i for i in range(41)]).growth(), 60)

    def test_warming_up_does_not_count(self):
        self.assertFalse(series("MiB", [min(i, 19) for i in range(40)]).grows())

    def test_short_peaks_do_not_count(self):
        self.assertFalse(series("files", [5 if i % 7 == 0 else 0 for i in range(40)]).grows())

    def test_a_shrinking_series_does_not_count(self):
        self.assertFalse(series("MiB", range(40, 0, -1)).grows())

    def test_documented_data_add_to_the_bound(self):
        leak = series("MiB", [i for i in range(40)])
        leak.allowance = 30
        self.assertFalse(leak.grows())


if __name__ == "__main__":
    unittest.main()
