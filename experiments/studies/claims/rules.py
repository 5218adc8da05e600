"""Rules that turn numbers into verdicts. The claims (reproduce.py) state each rule in words."""
# SPDX-License-Identifier: Apache-2.0
import math

HOLDS, CONDITIONS, OUT_OF_DATE, WRONG = VERDICTS = (
    "holds here", "holds under these conditions", "out of date", "wrong")

EXPLAINS = 0.9
#: "About ten": on-chip over off-chip bandwidth.
TEN_LOW, TEN_HIGH = 7.5, 13.3


def about_ten(value):
    return TEN_LOW <= value <= TEN_HIGH


def within(value, expected, tolerance):
    return abs(value - expected) <= tolerance * abs(expected)


def bandwidth_share(speedup, by_arithmetic):
    """Part of a speedup, in logarithms, that is lost without the bandwidth: 1 - ln by_arithmetic / ln speedup."""
    return 1 - math.log(max(by_arithmetic, 1)) / math.log(speedup) if speedup > 1 else 0


def judge_bandwidth(shares):
    """`shares`: bandwidth_share of each kind of work."""
    explained = sum(share >= EXPLAINS for share in shares)
    if not explained:
        return WRONG
    return HOLDS if explained == len(shares) else CONDITIONS


def judge_sram(claimed, newer):
    """On-chip over off-chip bandwidth of the machine of the claim, and of newer ones."""
    if not about_ten(claimed):
        return WRONG
    return HOLDS if all(map(about_ten, newer)) else OUT_OF_DATE


def judge_transfers(tasks):
    """Speedups without and with transfers, from the smallest task to the largest."""
    if not any(compute > 1 >= with_transfers for compute, with_transfers in tasks):
        return WRONG
    return HOLDS if tasks[-1][1] > 1 else CONDITIONS


def judge_growth(speedups):
    """Speedups at doubling batches."""
    if len(speedups) < 2 or speedups[-1] / speedups[0] <= 1.1:
        return WRONG
    still_grows = speedups[-1] >= 1.05 * speedups[-2]
    return HOLDS if speedups[-1] / speedups[0] >= 1.5 and still_grows else CONDITIONS


def judge_reuse(array, least_other):
    """Reads per multiply-add of the memory nearest to the arithmetic."""
    if array >= least_other:
        return WRONG
    return HOLDS if array <= least_other / 2 else CONDITIONS


def judge_utilisation(small, large, equal_work):
    """Utilisation by a small and a large square product, and by products with equally many multiply-adds."""
    if small > 0.75:
        return WRONG
    size_decides = small < 0.25 and large > 0.75 and max(equal_work) <= 1.5 * min(equal_work)
    return HOLDS if size_decides else CONDITIONS


def judge_matrix_units(over_ordinary, over_array):
    """Matrix units over ordinary units of the newest GPU, and over those of the array of the claim."""
    if over_ordinary < 2:
        return HOLDS
    return OUT_OF_DATE if over_array >= 1 else CONDITIONS


def judge_cpu_parallelism(speedup):
    """The fastest kernel on all threads over scalar code on one."""
    if speedup >= 10:
        return WRONG
    return HOLDS if speedup <= 2 else CONDITIONS


def judge_attention(flash, materialised):
    """Pairs of counted bytes and bytes of the formula, for the longest computation."""
    if flash[0] >= materialised[0]:
        return WRONG
    return HOLDS if within(*flash, 0.1) and within(*materialised, 0.1) else CONDITIONS


def judge_ring(rows, buffer_bytes):
    """Rows of (ranks, bytes of the server's link, bytes of a ring's link), at ascending numbers of ranks."""
    (ranks, server, ring), (last_ranks, last_server, last_ring) = rows[0], rows[-1]
    bounded = all(row[2] <= 2 * buffer_bytes for row in rows)
    if bounded and within(last_server / server, (last_ranks - 1) / (ranks - 1), 0.1):
        return HOLDS
    return CONDITIONS if last_server / server > last_ring / ring else WRONG


def judge_averaging(synchronous, averaged, difference, difference_every_step):
    """Bytes per step, and the largest difference of a weight from that of synchronous training: averaged every few
    steps, and in every step."""
    same = 1e-3
    if averaged >= synchronous or difference <= same:
        return WRONG
    return HOLDS if difference_every_step > same else CONDITIONS


def judge_model_parallel_gradients(summed, data_parallel):
    """Elements that ranks sum in a step: those of a model cut into layers, and those of data parallelism."""
    if summed < 0.01 * data_parallel:
        return WRONG
    return HOLDS if summed >= 0.5 * data_parallel else CONDITIONS


def judge_strategies(table, plain, fitted):
    """Pairs of speedups (T1 / T2 - 1) of data and model parallelism: in the survey's table, from data sheets alone,
    and with the fitted assumptions."""
    def near(pair):
        return all(abs(a - b) <= 0.05 for a, b in zip(table, pair))
    if near(plain):
        return HOLDS
    return CONDITIONS if near(fitted) else WRONG
