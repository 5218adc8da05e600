"""Rules and reports of the claims that `triptych reproduce` tests, without long measurements.

The rules are tested on both sides of each limit.
"""
# SPDX-License-Identifier: Apache-2.0
import math
import pathlib
import struct
import sys
import unittest

from support import PROGRAM, ProgramTest, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments/studies/claims"))
sys.dont_write_bytecode = True

import attention  # noqa: E402
import communication  # noqa: E402
import memories  # noqa: E402
import products  # noqa: E402
import report  # noqa: E402
import reproduce  # noqa: E402
import rules  # noqa: E402
import strategies  # noqa: E402
from program import CommandFailed, Program  # noqa: E402
from rules import CONDITIONS, HOLDS, OUT_OF_DATE, WRONG  # noqa: E402


class Rules(unittest.TestCase):
    def check(self, judge, *cases):
        """Cases are arguments and, last, the verdict."""
        for *arguments, verdict in cases:
            self.assertEqual(judge(*arguments), verdict, arguments)

    def test_the_share_of_the_bandwidth_is_one_of_logarithms(self):
        self.assertEqual(rules.bandwidth_share(100, 1), 1)
        self.assertAlmostEqual(rules.bandwidth_share(100, 10), 0.5)
        self.assertEqual(rules.bandwidth_share(100, 0.5), 1)
        self.assertEqual(rules.bandwidth_share(1.2, 1), 1)
        self.assertEqual(rules.bandwidth_share(0.5, 1), 0)

    def test_bandwidth_explains_all_some_or_no_kinds_of_work(self):
        self.check(rules.judge_bandwidth, ([1, 0.9], HOLDS), ([1, 0.89], CONDITIONS), ([0.89], WRONG))

    def test_sram_is_about_ten_times_on_the_claimed_machine_and_on_newer_ones(self):
        self.check(rules.judge_sram, (10, [9, 8], HOLDS), (7.5, [13.3], HOLDS), (10, [9, 6.4], OUT_OF_DATE),
                   (5, [10], WRONG), (14, [10], WRONG))

    def test_small_tasks_lose_when_copies_undo_a_gain(self):
        undone, gain, slow = (1.2, 1), (3, 1.2), (0.9, 0.5)
        self.check(rules.judge_transfers, ([undone, gain], HOLDS), ([undone, undone], CONDITIONS),
                   ([gain, gain], WRONG), ([slow, gain], WRONG))

    def test_growth_counts_from_first_to_last_and_may_saturate(self):
        self.check(rules.judge_growth, ([1, 2, 2.1], HOLDS), ([1, 2, 2.05], CONDITIONS), ([1, 1.2, 1.5], HOLDS),
                   ([1, 1.2, 1.45], CONDITIONS), ([1, 1.05], WRONG), ([2, 1], WRONG), ([2], WRONG))

    def test_reuse_is_fewer_reads_than_the_best_of_the_others(self):
        self.check(rules.judge_reuse, (0.1, 0.2, HOLDS), (0.15, 0.2, CONDITIONS), (0.2, 0.2, WRONG))

    def test_size_decides_about_utilisation_only_if_shapes_of_equal_work_agree(self):
        self.check(rules.judge_utilisation, (0.24, 0.9, [0.5, 0.75], HOLDS), (0.25, 0.9, [0.8, 0.9], CONDITIONS),
                   (0.1, 0.9, [0.5, 0.8], CONDITIONS),
                   (0.1, 0.5, [0.8, 0.9], CONDITIONS), (0.8, 0.9, [0.8, 0.9], WRONG))

    def test_matrix_units_are_compared_with_ordinary_units_and_with_arrays(self):
        self.check(rules.judge_matrix_units, (1.9, 0.1, HOLDS), (2, 1, OUT_OF_DATE), (2, 0.9, CONDITIONS))

    def test_parallelism_of_a_cpu_is_minimal_up_to_two(self):
        self.check(rules.judge_cpu_parallelism, (2, HOLDS), (2.1, CONDITIONS), (9.9, CONDITIONS), (10, WRONG))

    def test_attention_moves_less_and_follows_its_formulas(self):
        self.check(rules.judge_attention, ((100, 105), (1000, 950), HOLDS), ((100, 115), (1000, 950), CONDITIONS),
                   ((100, 105), (1000, 1150), CONDITIONS), ((1000, 1000), (1000, 1000), WRONG))

    def test_a_servers_link_grows_with_its_workers_and_that_of_a_ring_is_bounded(self):
        for server, ring, verdict in ((164, 20, HOLDS), (150, 21, CONDITIONS), (130, 19, CONDITIONS), (15, 19, WRONG)):
            self.assertEqual(rules.judge_ring([(2, 10, 10), (16, server, ring)], 10), verdict, (server, ring))

    def test_averaging_must_communicate_less_and_differ(self):
        self.check(rules.judge_averaging, (2, 1, 0.1, 1e-6, CONDITIONS), (2, 1, 0.1, 0.1, HOLDS),
                   (1, 2, 0.1, 0.1, WRONG), (2, 1, 1e-6, 1e-6, WRONG))

    def test_model_parallel_ranks_sum_gradients_or_not(self):
        self.check(rules.judge_model_parallel_gradients, (9, 1000, WRONG), (10, 1000, CONDITIONS),
                   (500, 1000, HOLDS))

    def test_table_2_follows_from_data_sheets_or_from_a_fit(self):
        said, far = (0.305, 0.045), (0.97, 0.17)
        self.check(rules.judge_strategies, (said, (0.3, 0.05), far, HOLDS), (said, far, (0.305, 0.045), CONDITIONS),
                   (said, far, far, WRONG), (said, (0.375, 0.045), far, WRONG),
                   (said, (0.3, 0.17), (0.97, 0.045), WRONG))


class Reports(unittest.TestCase):
    def test_values_that_are_not_finite_are_missing(self):
        self.assertIsNone(report.figure(math.inf, "s", "measured"))
        self.assertIsNone(report.ratio(math.nan, "measured", "measured"))

    def test_a_ratio_names_both_kinds_only_if_they_differ(self):
        self.assertEqual(report.ratio(2, "measured", "measured")["kind"], "measured")
        self.assertEqual(report.ratio(2, "measured", "simulated"), {"value": 2, "unit": "x", "kind":
                                                                   "measured/simulated"})

    def test_bars_form_one_series_per_kind(self):
        series = report.bars_by_kind([("modelled", "a", 1), ("measured", "b", 2), ("modelled", "c", 3)])
        self.assertEqual([(one["name"], [point["x"] for point in one["points"]]) for one in series],
                         [("modelled", ["a", "c"]), ("measured", ["b"])])

    def test_bytes_have_binary_prefixes(self):
        self.assertEqual([report.bytes_text(count) for count in (12, 1536, 3 << 30, 1 << 52)],
                         ["12.0 B", "1.5 KiB", "3.0 GiB", "4096.0 TiB"])

    def test_a_step_takes_the_longer_of_arithmetic_and_memory_at_each_node(self):
        self.assertEqual(memories.seconds([(10, 1), (1, 10)], 1, 1), 20)
        self.assertIsNone(memories.best_of({"copy": None, "triad": None}))
        self.assertEqual(memories.best_of({"copy": {"value": 1}, "triad": {"value": 2}}), {"value": 2})

    def test_claims_are_found_by_their_ids_in_the_order_of_the_page(self):
        self.assertEqual([claim.id for claim in reproduce.find_claims(["ring", "bandwidth"])], ["bandwidth", "ring"])
        self.assertEqual(reproduce.find_claims([]), reproduce.CLAIMS)
        with self.assertRaisesRegex(CommandFailed, '"luck"; choose from: .*flash-attention'):
            reproduce.find_claims(["luck"])


class Recorded:
    """A program whose commands have these results."""

    def __init__(self, *results):
        self.recorded = list(results)

    def results(self, *_):
        return self.recorded.pop(0)


class Examinations(unittest.TestCase):
    def test_only_nodes_with_a_kernel_do_work(self):
        nodes = [{"op": "Conv(group=1)", "kernel": "gemm", "flops": 8, "bytes": 4},
                 {"op": "Concat(axis=1)", "kernel": "", "flops": 0, "bytes": 9},
                 {"op": "Conv(group=2)", "kernel": "gemm", "flops": 6, "bytes": 2}]
        self.assertEqual(memories.kinds_of_work(Recorded([{"nodes": nodes}])), {"Conv": [(8, 4), (6, 2)]})

    def test_reads_are_separated_from_writes_where_the_model_does_so(self):
        macs = products.SIDE ** 3
        traffic = [{"level": "L1", "bytes": 8 * macs, "read_bytes": 4 * macs}, {"level": "L2", "bytes": 2 * macs}]
        found = products.cpu_reads(Recorded([{"kernel": "gemm", "traffic": traffic}, {"kernel": "eigen"}]))
        self.assertEqual([(one.kernel, one.level, one.reads, one.nearest) for one in found],
                         [("gemm", "L1", 1, True), ("gemm", "L2", 0.5, False)])

    def test_the_best_cut_of_the_model_counts(self):
        times = {"single": 10, "dp": 5, "layers": 20, "pipeline:2": 8}
        self.assertEqual(strategies.best_gains(times), (1, 0.25))

    def test_the_law_of_the_materialised_form_predicts_the_longest_length(self):
        law = [3 * length ** 2 + 5 * length for length in attention.LENGTHS]
        self.assertAlmostEqual(attention.predicted([law[0], law[1], 0]), law[2])


class Commands(ProgramTest):
    def test_a_failed_command_reports_its_words_reason_and_exit_code(self):
        program = Program(PROGRAM, quick=True)
        with self.assertRaisesRegex(CommandFailed, "^triptych bench bandwidth --backends nothing: .*nothing") as raised:
            program.results("bench", "bandwidth", "--backends", "nothing")
        self.assertEqual(raised.exception.exit_code, 2)

    def test_options_of_all_commands_reach_them(self):
        program = Program(PROGRAM, quick=True, options=["--max-memory", "1"])
        with self.assertRaisesRegex(CommandFailed, "memory"):
            program.results("explain", "--model", "unet-l")

    def test_tensors_of_an_exported_model_are_read(self):
        path = self.folder / "weights.safetensors"
        header = b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, ' \
                 b'"n": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}, "__metadata__": {"k": "v"}}'
        path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2fq", 1.5, -2, 7))
        self.assertEqual(communication.read_tensors(path), {"a": (1.5, -2.0)})


if __name__ == "__main__":
    main()
