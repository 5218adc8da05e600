"""Matrix products: the claims "reuse", "large-products" and "cpu-parallelism"."""
# SPDX-License-Identifier: Apache-2.0
from program import command
from report import axis, bar_chart, bars_by_kind, figure, finding, line_chart, ratio, series, table
from rules import judge_cpu_parallelism, judge_reuse, judge_utilisation

FLOAT = 4  # bytes
SIDE = 128
LARGE, SMALL = "tpu-v2-core", "mmu16"
#: Rows, inner dimension and columns of products with 2^27 multiply-adds.
EQUAL_WORK = ((512, 512, 512), (8192, 128, 128), (32, 2048, 2048), (65536, 128, 16), (262144, 32, 16))


def array_words(machine):
    return ["--backend", "systolic", "--machine", machine, "--contract", "bf16"]


class Reads:
    """Reads per multiply-add of one memory of one machine. `nearest`: of its memories, except registers, the nearest
    to the arithmetic."""

    def __init__(self, machine, kernel, level, how, reads, nearest):
        self.machine, self.kernel, self.level, self.how, self.reads = machine, kernel, level, how, reads
        self.nearest = nearest
        self.kind = "modelled" if how == "modelled from blocking" else "simulated"


def cpu_reads(program):
    """Cache accesses of instructions, for each kernel with a model. Only loads where the model separates them."""
    rows = program.results("bench", "matmul", "--sizes", SIDE, "--kernel", "all", "--repeats", 1)
    return [Reads("cpu", row["kernel"], one["level"], "modelled from blocking",
                  one.get("read_bytes", one["bytes"]) / FLOAT / SIDE ** 3, index == 0)
            for row in rows for index, one in enumerate(row.get("traffic", []))]


def gpu_reads(program):
    """Bytes that the lanes of an emulated GPU load."""
    found = []
    for row in program.results("bench", "matmul", "--backend", "cuda-emulated", "--sizes", SIDE, "--kernel",
                               "naive,tiled,register-tiled,vectorised"):
        loads = {space: [one[space]["load"] for one in row["counters"]] for space in ("shared", "global")}
        uses_shared = any(load["requests"] for load in loads["shared"])
        for space in ("shared", "global") if uses_shared else ("global",):
            reads = sum(load["useful_bytes"] for load in loads[space]) / FLOAT / SIDE ** 3
            found.append(Reads("cuda-emulated", row["kernel"], f"{space} memory", "counted", reads,
                               space == "shared" or not uses_shared))
    return found


def array_reads(program):
    """Counters of arrays, simulated by the twin, and by the RTL where it is built."""
    built = {row["name"]: row["rtl"] != "not built" for row in program.results("machine", "list")}
    found = []
    for machine in ("mmu4", SMALL):
        for simulate in ("twin", "rtl") if built[machine] else ("twin",):
            row = program.results("bench", "matmul", *array_words(machine), "--simulate", simulate, "--sizes", SIDE,
                                  "--layers", "--repeats", 1)[0]
            counted = row["array"][0]["counters"]
            name = f"{machine}, {simulate}"
            found += [Reads(name, "", "unified buffer and weights", "counted",
                            (counted["buffer_reads"] + counted["weight_reads"]) / counted["macs"], True),
                      Reads(name, "", "accumulators", "counted", counted["accumulator_reads"] / counted["macs"], False)]
    return found


def examine_reuse(program):
    others, arrays = cpu_reads(program) + gpu_reads(program), array_reads(program)
    other, array = (min(one.reads for one in found if one.nearest) for found in (others, arrays))
    found = others + arrays
    return finding(
        judge_reuse(array, other),
        f"A product of {SIDE} x {SIDE} x {SIDE}: the 16 x 16 array reads {array:.3f} operands per multiply-add from its "
        f"memories, since an activation serves a whole row of weights and a weight a whole stream: the larger the "
        f"array, the fewer. The best kernel of CPU or GPU reads {other:.3f} from the memory nearest to its registers, "
        f"a scalar loop 2.",
        [command("bench", "matmul", "--sizes", SIDE, "--kernel", "all", "--json"),
         command("bench", "matmul", "--backend", "cuda-emulated", "--sizes", SIDE, "--kernel",
                 "naive,tiled,register-tiled")],
        [table(f"Reads per multiply-add, product of side {SIDE}",
               [("machine", ""), ("kernel", ""), ("memory", ""), ("reads per multiply-add", "1"), ("how", "")],
               [[one.machine, one.kernel, one.level, figure(one.reads, "1", one.kind), one.how] for one in found])],
        [bar_chart("reuse", "Reads per multiply-add from the memory nearest to the arithmetic",
                   axis("reads", "1", log=True),
                   bars_by_kind([(one.kind, f"{one.machine} {one.kernel}", one.reads)
                                 for one in found if one.nearest]))])


def square_utilisation(program, machine, sizes):
    rows = program.results("bench", "matmul", *array_words(machine), "--sizes", sizes, "--layers", "--repeats", 1)
    return [row["array"][0]["useful"] for row in rows]


def utilisation(program, machine, m, k, n):
    array = program.results("trace", "matmul", *array_words(machine), "--m", m, "--k", k, "--n", n)[0]["array"]
    counted = array["nodes"][0]["counters"]
    return counted["macs"] / counted["cycles"] / array["rows"] / array["columns"]


def examine_utilisation(program):
    sizes = [16, 32, 64, 128, 256, 512, 1024] + ([] if program.quick else [2048])
    span = f"{sizes[0]}..{sizes[-1]}"
    small, large = (square_utilisation(program, machine, span) for machine in (SMALL, LARGE))
    equal = [utilisation(program, LARGE, *shape) for shape in EQUAL_WORK]
    return finding(
        judge_utilisation(large[0], large[-1], equal),
        f"The 128 x 128 array is used to {100 * large[0]:.3g} % by a product of side {sizes[0]} and to "
        f"{100 * large[-1]:.3g} % by one of side {sizes[-1]}; but of shapes with equally many multiply-adds one uses it "
        f"to {100 * min(equal):.2g} % and another to {100 * max(equal):.2g} %. A program takes the same cycles however "
        f"often it runs, so that the length of training changes nothing; the 16 x 16 array is used to "
        f"{100 * small[2]:.2g} % from side {sizes[2]} on.",
        [command("bench", "matmul", *array_words(LARGE), "--sizes", span, "--json")],
        [table("Utilisation of square products",
               [("product", ""), ("16 x 16 array", "%"), ("128 x 128 array", "%")],
               [[f"{n} x {n} x {n}", figure(little, "%", "simulated"), figure(much, "%", "simulated")]
                for n, little, much in zip(sizes, small, large)]),
         table("Utilisation of the 128 x 128 array by equal work",
               [("rows x inner x columns", ""), ("utilisation", "%")],
               [[" x ".join(map(str, shape)), figure(used, "%", "simulated")]
                for shape, used in zip(EQUAL_WORK, equal)])],
        [line_chart("utilisation", "Utilisation by size", axis("side of the product", "1", log=True),
                    axis("used PE-cycles", "%"),
                    [series(SMALL, "simulated", zip(sizes, small)), series(LARGE, "simulated", zip(sizes, large))])])


def examine_cpu_parallelism(program):
    side = 256 if program.quick else 512

    def timed(kernel, threads):
        return program.results("bench", "matmul", "--sizes", side, "--kernel", kernel, "--threads", threads,
                               "--repeats", 5)[0]
    scalar, vector, full = (timed(*way) for way in (("naive", 1), ("best", 1), ("best", 0)))
    threads = full["threads"]
    first, second, third = (row["median"]["value"] for row in (scalar, vector, full))
    rows = [[name, figure(seconds, "s", "measured"), figure(2 * side ** 3 / seconds, "FLOP/s", "measured"),
             ratio(first / seconds, "measured", "measured")]
            for name, seconds in (("scalar, 1 thread", first), ("best kernel, 1 thread", second),
                                  (f"best kernel, {threads} threads", third))]
    return finding(
        judge_cpu_parallelism(first / third),
        f"Vectors and blocking make a product of side {side} {first / second:.0f} times as fast as scalar code, "
        f"{threads} threads another {second / third:.1f} times: {first / third:.0f} times together.",
        [command("bench", "matmul", "--sizes", side, "--kernel", "naive,best", "--threads", f"1,{threads}")],
        [table(f"A product of side {side} on this CPU",
               [("code", ""), ("time", "s"), ("rate", "FLOP/s"), ("over scalar code", "x")], rows)])
