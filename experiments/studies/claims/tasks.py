"""Convolutions of several sizes and batches: the claims "transfer" and "batch"."""
# SPDX-License-Identifier: Apache-2.0
from program import command
from report import axis, finding, line_chart, ratio, series, stated, table
from rules import judge_growth, judge_transfers

ARRAY, GPU = "tpu-v2-core", "h200"
CHANNELS = 32
#: A copy's start, and a PCIe Gen3 x16 as TPU v1 has it.
HOST_LINK = "1e-5,15e9"
FLOAT = 4  # bytes


def sweep_command(size, batches):
    return ["bench", "conv", "--backends", "cpu,systolic", "--contract", "bf16", "--machine", ARRAY, "--shape",
            f"{CHANNELS},{CHANNELS},{size},{size}", "--batch", batches, "--repeats", 15, "--link",
            HOST_LINK]


def sweep(program, size, batches):
    """A dictionary per batch: the points of the CPU and of the array, and the modelled seconds of a GPU, without and
    with copies."""
    cpu, array = program.results(*sweep_command(size, batches))
    modelled = program.results("bench", "conv", "--contract", "bf16", "--shape",
                               f"{CHANNELS},{CHANNELS},{size},{size}", "--batch", batches, "--repeats", 1, "--device",
                               GPU)
    link = program.machines()[GPU]["links"]["host"]
    points = []
    for here, there, gpu in zip(cpu["points"], array["points"], modelled):
        compute = gpu["modelled"]["time"]["value"]
        copied = 2 * FLOAT * here["batch"] * size * size * CHANNELS  # the image, and the result
        copies = 2 * max(link["alpha"]["value"], float(HOST_LINK.partition(",")[0])) + copied / link["beta"]["value"]
        points.append({"batch": here["batch"], "cpu": here, "array": there, "gpu": compute, "gpu_all": compute + copies})
    return points, array["break_even"]


def speedup(point, name="speedup"):
    return point["array"][name]["value"]


def over_gpu(point, name):
    return point["cpu"]["time"]["value"] / point[name]


def cells(point):
    """Times of CPU and array, and speedups."""
    return [stated(point["cpu"]["time"], "s"), stated(point["array"]["time"], "s"),
            stated(point["array"]["with_transfers"], "s"), ratio(speedup(point), "measured", "simulated"),
            ratio(speedup(point, "speedup_with_transfers"), "measured", "modelled")]


def chart(name, title, label, points, at, lines):
    """Lines of the array with and without copies, and those of the GPU."""
    arrays = [series("array, without copies", "simulated", [(at(point), speedup(point)) for point in points]),
              series("array, with copies", "modelled",
                     [(at(point), speedup(point, "speedup_with_transfers")) for point in points])]
    gpus = [series(text, "modelled", [(at(point), over_gpu(point, key)) for point in points]) for text, key in lines]
    return line_chart(name, title, axis(label, "1", log=True), axis("speedup", "x", log=True), arrays + gpus)


def examine_transfers(program):
    sizes = [8, 16, 32, 64] if program.quick else [8, 16, 32, 64, 128]
    points = [{**sweep(program, size, "1")[0][0], "size": size} for size in sizes]
    tasks = [(speedup(point), speedup(point, "speedup_with_transfers")) for point in points]
    lost = ", ".join(str(point["size"]) for point, (compute, with_copies) in zip(points, tasks)
                     if compute > 1 >= with_copies) or "no size"
    rows = [[f"{point['size']} x {point['size']}", *cells(point),
             *(ratio(over_gpu(point, name), "measured", "modelled") for name in ("gpu", "gpu_all"))]
            for point in points]
    return finding(
        judge_transfers(tasks),
        f"A convolution of {CHANNELS} channels on {ARRAY}: the copies undo the gain of images with a side of {lost}. "
        f"With copies it is {tasks[0][1]:.2g} times as fast as the CPU at {sizes[0]} and {tasks[-1][1]:.2g} times at "
        f"{sizes[-1]}.",
        [command(*sweep_command(size, "1")) for size in (sizes[0], sizes[-1])],
        [table(f"One convolution, {CHANNELS} > {CHANNELS} channels, 3 x 3, batch 1",
               [("image", ""), ("CPU", "s"), ("array", "s"), ("array with copies", "s"), ("speedup", "x"),
                ("with copies", "x"), ("H200, modelled", "x"), ("H200 with copies, modelled", "x")], rows)],
        [chart("transfer-speedups", "Speedup over the CPU by size", "side of the image", points,
               lambda point: point["size"], [("H200, without copies", "gpu"), ("H200, with copies", "gpu_all")])])


def examine_batch(program):
    batches = "1..16" if program.quick else "1..64"
    points, break_even = sweep(program, 16, batches)
    compute = [speedup(point) for point in points]
    full = [speedup(point, "speedup_with_transfers") for point in points]
    first = break_even["with_transfers"]
    rows = [[point["batch"], *cells(point), ratio(over_gpu(point, "gpu_all"), "measured", "modelled")]
            for point in points]
    return finding(
        judge_growth(full),
        f"With copies, {ARRAY} is {full[0]:.3g} times as fast as the CPU at batch 1 and {full[-1]:.3g} times at batch "
        f"{points[-1]['batch']} ({compute[0]:.3g} and {compute[-1]:.3g} without); the last doubling adds "
        f"{100 * (full[-1] / full[-2] - 1):.0f} %. It is faster "
        f"{f'from batch {first} on' if first else 'at no batch'}.",
        [command(*sweep_command(16, batches))],
        [table(f"One convolution, {CHANNELS} > {CHANNELS} channels, 3 x 3, on 16 x 16",
               [("batch", "1"), ("CPU", "s"), ("array", "s"), ("array with copies", "s"), ("speedup", "x"),
                ("with copies", "x"), ("H200 with copies, modelled", "x")], rows)],
        [chart("batch-speedups", "Speedup over the CPU by batch (figure 3)", "batch", points,
               lambda point: point["batch"], [("H200, with copies", "gpu_all")])])
