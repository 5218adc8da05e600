"""Bandwidth of memories and its effects: the claims "bandwidth", "sram" and "matrix-units"."""
# SPDX-License-Identifier: Apache-2.0
from program import command
from report import axis, bar_chart, bars_by_kind, figure, finding, ratio, series, stated, table
from rules import EXPLAINS, bandwidth_share, judge_bandwidth, judge_matrix_units, judge_sram


def best_of(level):
    """The better of copy and triad, or None."""
    known = [level[name] for name in ("copy", "triad") if level[name]]
    return max(known, key=lambda one: one["value"]) if known else None


def roof(machine):
    """Peak and memory bandwidth, so that parts of two machines can be combined."""
    return machine["peaks"]["f32"]["value"], best_of(machine["levels"][-1])["value"]


def seconds(work, peak, bandwidth):
    return sum(max(flops / peak, moved / bandwidth) for flops, moved in work)


def kinds_of_work(program):
    """(FLOP, bytes) of the nodes of a training step by operator. Nodes without a kernel do no work."""
    step = program.results("explain", "--model", "unet-m", "--mode", "train", "--batch", 8)[0]
    kinds = {}
    for node in step["nodes"]:
        if node["kernel"] and node["bytes"] > 0:
            kinds.setdefault(node["op"].partition("(")[0], []).append((node["flops"], node["bytes"]))
    return kinds


def compare(program, cpu, gpu):
    """(operator, work, seconds on the CPU, speedup, by bandwidth alone, by arithmetic alone) of the operators that
    take at least 1 % of the CPU's time, the longest first."""
    kinds = []
    for name, work in kinds_of_work(program).items():
        here = seconds(work, *cpu)
        kinds.append((name, work, here, here / seconds(work, *gpu), here / seconds(work, cpu[0], gpu[1]),
                      here / seconds(work, gpu[0], cpu[1])))
    total = sum(kind[2] for kind in kinds)
    return sorted((kind for kind in kinds if kind[2] >= 0.01 * total), key=lambda kind: (-kind[2], kind[0]))


def machine_table(cpu, machines):
    rows = []
    for machine in (cpu, *machines):
        peak, memory = machine["peaks"]["f32"], best_of(machine["levels"][-1])
        rows.append([machine["description"], stated(peak, "FLOP/s"), stated(memory, "byte/s"),
                     ratio(peak["value"] / memory["value"], peak["kind"], memory["kind"], "FLOP/byte"),
                     ratio(memory["value"] / roof(cpu)[1], memory["kind"], "measured"),
                     ratio(peak["value"] / roof(cpu)[0], peak["kind"], "measured")])
    return table("Machines: arithmetic and memory",
                 [("machine", ""), ("f32", "FLOP/s"), ("memory", "byte/s"), ("ridge", "FLOP/byte"),
                  ("bandwidth over this CPU", "x"), ("arithmetic over this CPU", "x")], rows)


def operator_row(kind):
    name, work, here, speedup, by_bandwidth, by_arithmetic = kind
    intensity = sum(flops for flops, _ in work) / sum(moved for _, moved in work)
    return [name, figure(intensity, "FLOP/byte", "modelled"), figure(here, "s", "modelled"),
            *(ratio(value, "modelled", "modelled") for value in (speedup, by_bandwidth, by_arithmetic)),
            figure(bandwidth_share(speedup, by_arithmetic), "%", "modelled")]


def examine_bandwidth(program):
    cpu, gpu = program.memory_of("cpu"), program.machines()["h200"]
    kinds = compare(program, roof(cpu), roof(gpu))
    shares = [bandwidth_share(kind[3], kind[5]) for kind in kinds]
    lost, kept = (", ".join(f"{kind[0]} ({kind[5]:.3g} of {kind[3]:.3g} times)" for kind, share in zip(kinds, shares)
                            if (share >= EXPLAINS) == explained) or "nothing" for explained in (True, False))
    machines = [program.machines()[name] for name in ("i9-9900k", "rtx2070super", "a100", "h200")]
    bars = [series(name, "modelled", [(kind[0], kind[column]) for kind in kinds])
            for name, column in (("all of it", 3), ("its bandwidth alone", 4), ("its arithmetic alone", 5))]
    return finding(
        judge_bandwidth(shares),
        f"An H200 has {roof(gpu)[1] / roof(cpu)[1]:.0f} times this CPU's bandwidth and "
        f"{roof(gpu)[0] / roof(cpu)[0]:.0f} times its float32 arithmetic. With the CPU's bandwidth it would lose, by "
        f"the roofline, the speedup of: {lost}. It would keep much of that of: {kept}.",
        [command("bench", "bandwidth", "--backends", "cpu", "--device", "h200,a100"),
         command("explain", "--model", "unet-m", "--mode", "train", "--batch", 8)],
        [machine_table(cpu, machines),
         table("A training step of unet-m, batch 8, on this CPU and an H200",
               [("operator", ""), ("intensity", "FLOP/byte"), ("on this CPU", "s"), ("speedup", "x"),
                ("by bandwidth alone", "x"), ("by arithmetic alone", "x"), ("lost without its bandwidth", "%")],
               map(operator_row, kinds))],
        [bar_chart("bandwidth-speedups", "Gain of an H200 over this CPU, by operator", axis("speedup", "x", log=True),
                   bars)])


def ratios(program):
    """(machine, nearest level, its bandwidth, the memory's) of machines that state both."""
    machines = [(name, program.machines()[name]) for name in ("rtx2070super", "a100", "h100", "h200", "tpu-v1")]
    machines.append(("this CPU", program.memory_of("cpu")))
    machines.append(("systolic:mmu16", program.machines()["systolic:mmu16"]))
    machines.append(("systolic:tpu-v2-core", program.memory_of("systolic", "--machine", "tpu-v2-core")))
    found = [(name, one["levels"][0]["level"], best_of(one["levels"][0]), best_of(one["levels"][-1]))
             for name, one in machines]
    return [row for row in found if row[2] and row[3]]


def examine_sram(program):
    found = ratios(program)
    values = {name: near["value"] / far["value"] for name, _, near, far in found}
    rows = [[name, level, stated(near, "byte/s"), stated(far, "byte/s"),
             ratio(values[name], near["kind"], far["kind"])] for name, level, near, far in found]
    survey = program.machines()["survey"]
    sram, hbm = survey["sram"], survey["hbm"][-1]
    rows.append(["survey", "SRAM", stated(sram, "byte/s"), stated(hbm, "byte/s"),
                 ratio(sram["value"] / hbm["value"], sram["kind"], hbm["kind"])])
    return finding(
        judge_sram(values["a100"], [values["h100"], values["h200"]]),
        f"Shared memory over HBM: {values['a100']:.1f} on an A100, which the numbers are of, {values['h100']:.1f} on "
        f"an H100 and {values['h200']:.1f} on an H200: HBM has grown faster since.",
        [command("bench", "bandwidth", "--backends", "cpu,systolic", "--device",
                 "rtx2070super,a100,h100,h200,tpu-v1")],
        [table("Memory on the chip and outside it",
               [("machine", ""), ("level", ""), ("on the chip", "byte/s"), ("beside it", "byte/s"), ("ratio", "x")],
               rows)],
        [bar_chart("sram-ratios", "Bandwidth on the chip over that outside it", axis("ratio", "x", log=True),
                   bars_by_kind([(near["kind"], name, values[name]) for name, _, near, _ in found]))])


def examine_matrix_units(program):
    rows, ordinary, matrix = [], [], []
    over_ordinary = newest_gpu = newest_tpu = 0
    for name in ("rtx2070super", "a100", "h100", "h200", "tpu-v2", "tpu-v4", "tpu-v5e"):
        machine = program.machines()[name]
        peaks = machine["peaks"]
        half = peaks.get("bf16") or peaks.get("f16")
        scalar = peaks.get("f32") if machine["kind"] == "gpu" else None
        if not half:
            continue
        matrix.append((name, half["value"]))
        row = [machine["description"], None, stated(half, "FLOP/s"), None]
        if scalar:
            ordinary.append((name, scalar["value"]))
            newest_gpu, over_ordinary = half["value"], half["value"] / scalar["value"]
            row[1], row[3] = stated(scalar, "FLOP/s"), ratio(over_ordinary, scalar["kind"], half["kind"])
        else:
            newest_tpu = max(newest_tpu, half["value"])
        rows.append(row)
    return finding(
        judge_matrix_units(over_ordinary, newest_gpu / newest_tpu),
        f"On an H200 the matrix units compute {over_ordinary:.1f} times as fast as the ordinary ones, and "
        f"{newest_gpu / newest_tpu:.1f} times as fast as the fastest of these TPU chips.",
        [command("bench", "bandwidth", "--device", "a100,h100,h200,tpu-v4")],
        [table("Peaks of a chip", [("machine", ""), ("ordinary units, f32", "FLOP/s"), ("matrix units", "FLOP/s"),
                                   ("ratio", "x")], rows)],
        [bar_chart("matrix-units", "Peaks: matrix units and ordinary ones", axis("peak", "FLOP/s", log=True),
                   [series("ordinary units, f32", "modelled", ordinary),
                    series("matrix units, bf16 or f16", "modelled", matrix)])])
