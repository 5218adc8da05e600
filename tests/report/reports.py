"""Reports as `compare` and `reproduce` write them, made by hand for the tests of their pages.

The network is unet-s; its work is counted as the program counts it, the times are chosen."""
# SPDX-License-Identifier: Apache-2.0
import base64
import copy
import math

from support import png_bytes

SHA = "13a337600c3b5d1e0f6f7b1c2a9d8e4453627181908fa0b1c2d3e4f5061728394"[:64]
ENVIRONMENT = {"program": "triptych", "version": "0.1.0", "commit": "a470740c3b", "compiler": "GNU 12.2.0",
               "build_type": "Release", "system": "Linux 6.1.0", "machine": "x86_64",
               "cpu": "AMD EPYC 7763 64-Core Processor", "threads": 2,
               "versions": {"onetbb": "2021.8", "fmt": "90100"}}


def figure(value, unit, kind, **more):
    return {"value": value, "unit": unit, "kind": kind, **more}


def convolutions():
    """(name, positions, k, columns) of unet-s, one image."""
    rows, size, before = [], 64, 1
    for level, channels in enumerate((8, 16, 32), 1):
        rows += [(f"down{level}.conv0", size * size, 9 * before, channels),
                 (f"down{level}.conv1", size * size, 9 * channels, channels)]
        before, size = channels, size // 2
    rows += [("bottom.conv0", 64, 288, 64), ("bottom.conv1", 64, 576, 64)]
    for level, channels in ((3, 32), (2, 16), (1, 8)):
        rows.append((f"up{level}.transpose", size * size, 2 * channels, 4 * channels))
        size *= 2
        rows += [(f"up{level}.conv0", size * size, 18 * channels, channels),
                 (f"up{level}.conv1", size * size, 9 * channels, channels)]
    return rows + [("head", 64 * 64, 8, 1)]


def nodes(batch=4):
    """(node, operator, pass, FLOPs, bytes) of a training step."""
    forward, backward, optimizer = [], [], []
    for name, positions, k, columns in convolutions():
        flops = 2 * positions * k * columns * batch
        moved = 4 * (batch * positions * (k // 9 + columns) + k * columns)
        forward.append((name, "Conv", "forward", flops, moved))
        stem, number = name[:-1], name[-1]
        if stem.endswith("conv"):
            wide = batch * positions * columns
            stage = stem[:-4]
            forward.append((f"{stage}bn{number}", "BatchNormalization", "forward", 6 * wide, 8 * wide))
            forward.append((f"{stage}relu{number}", "Relu", "forward", wide, 8 * wide))
            backward.append((f"grad.{stage}relu{number}.relugradient", "ReluGradient", "backward", wide, 12 * wide))
            backward.append((f"grad.{stage}bn{number}.batchnormgradient", "BatchNormGradient", "backward",
                             11 * wide, 12 * wide))
        backward.append((f"grad.{name}.convweightgradient", "ConvWeightGradient", "backward", flops, moved))
        if name != "down1.conv0":
            backward.append((f"grad.{name}.convtranspose", "ConvTranspose", "backward", flops, moved))
        optimizer.append((f"{name}.weight.adam", "Adam", "optimizer", 12 * k * columns, 28 * k * columns))
    return forward + list(reversed(backward)) + optimizer


def layers(device, kernel, kind, peak, bandwidth, overhead):
    """Every node with a time that a machine of these figures may take; none where kind is empty."""
    rows = []
    for number, (node, op, which, flops, moved) in enumerate(nodes()):
        share = 0.55 + 0.3 * math.sin(number * 1.7)
        seconds = max(flops / (peak * share), moved / (bandwidth * share)) + overhead
        product = op in ("Conv", "ConvWeightGradient", "ConvTranspose")
        rows.append({"node": node, "op": op, "pass": which, "stage": node.removeprefix("grad.").split(".")[0], "kernel": kernel if product else "rows",
                     "device": device, "why": "best kernel" if product else "the only kernel",
                     "time": figure(seconds, "s", kind) if kind else None,
                     "flops": flops, "bytes": moved, "intensity": flops / moved})
    return rows


def masks(shift=0):
    def inside(x, y):
        return (x - 30) ** 2 / 500 + (y - 34 - shift) ** 2 / 260 < 1 or (x - 52) ** 2 + (y - 10) ** 2 < 60

    def encoded(sample):
        return base64.b64encode(png_bytes(64, 64, sample=sample)).decode()
    rows = []
    for name in ("membranes/0007.png", "membranes/0008.png"):
        rows.append({"image": name, "width": 64, "height": 64,
                     "input_png": encoded(lambda x, y, c: (90 if inside(x, y) else 160) + (x * 31 + y * 17) % 48),
                     "truth_png": encoded(lambda x, y, c: 255 if inside(x, y) else 0),
                     "prediction_png": encoded(lambda x, y, c: 255 if inside(x + (y % 7 == 0), y) else 0),
                     "different_pixels": 0})
    return rows


def losses(count=32):
    return [0.69 * math.exp(-i / 14) + 0.21 + 0.02 * math.sin(i * 1.3) for i in range(count)]


def epochs(train, evaluate, kind):
    rows = [(0.412, 0.7114, 0.5521, 0.1432), (0.291, 0.8523, 0.7426, 0.0817)]
    return [{"epoch": i + 1, "loss": loss, "dice": dice, "iou": iou, "pixel_error": error,
             "train_time": figure(train * (1 + 0.01 * i), "s", kind) if kind else None,
             "evaluate_time": figure(evaluate, "s", kind) if kind else None}
            for i, (loss, dice, iou, error) in enumerate(rows)]


def times(step, inference, kind, samples=()):
    result = {"epoch": figure(16 * step, "s", kind), "step": figure(step, "s", kind),
              "image": figure(step / 4, "s", kind), "inference_image": figure(inference, "s", kind)}
    if samples:
        result["step"]["samples"] = [step * share for share in samples]
    return result


def machine(name, backend, device, **more):
    return {"name": name, "backend": backend, "simulate": "", "device": device, "contract": "bf16-exact",
            "available": True, "checks_bits_only": False, "threads": 2, "losses": losses(),
            "weights_sha256": SHA, "masks_sha256": SHA[::-1], "masks": masks(), **more}


def energy(sram, dram):
    parts = [("multiply-adds", 4.1e7, 1.1e-12), ("on-chip memory", sram, 5e-12), ("DRAM", dram, 6.4e-10)]
    rows = [{"part": part, "joule": events * each, "events": events, "joule_per_event": each}
            for part, events, each in parts]
    return {"per_image": figure(sum(row["joule"] for row in rows), "J", "modelled"), "parts": rows,
            "table": "45 nm, 0.9 V"}


def utilisation(step, kind, peak, padded):
    flops = sum(node[3] for node in nodes())
    peak_figure = figure(peak, "FLOP/s", kind)
    return {"mfu": {"value": flops / step / peak, "kind": kind, "peak": peak_figure, "flops": flops},
            "hfu": {"value": padded * flops / step / peak, "kind": kind, "peak": peak_figure,
                    "flops": padded * flops}}


def processor():
    step = 0.00912
    return machine(
        "cpu", "cpu", "AMD EPYC 7763 64-Core Processor", epochs=epochs(16 * step, 0.0131, "measured"),
        times=times(step, 0.00061, "measured", (0.98, 1, 1.01, 1.05, 0.99)),
        throughput=figure(4 / step, "image/s", "measured"), speedup=None,
        layers=layers("cpu", "gemm", "measured", 1.5e11, 2.1e10, 3e-6),
        placement=[{"device": "cpu", "nodes": len(nodes()), "flops": sum(n[3] for n in nodes()),
                    "time": figure(step, "s", "measured")}],
        roofline={"peak": figure(1.53e11, "FLOP/s", "measured"), "memory": figure(2.2e10, "byte/s", "measured"),
                  "levels": [{"name": "L1", "bandwidth": figure(4.1e11, "byte/s", "measured")},
                             {"name": "L2", "bandwidth": figure(1.6e11, "byte/s", "measured")},
                             {"name": "memory", "bandwidth": figure(2.2e10, "byte/s", "measured")}],
                  "source": "triptych calibrate"},
        utilisation=utilisation(step, "measured", 1.53e11, 1.06),
        reuse=[{"level": level, "reads_per_mac": figure(value, "1", "modelled"), "how": "blocking"}
               for level, value in (("L1", 0.29), ("L2", 0.041), ("memory", 0.0093))],
        energy=energy(2.3e7, 8.1e5))


def emulated():
    result = machine("cuda-emulated", "cuda-emulated", "the kernels' source on this processor",
                     checks_bits_only=True, epochs=epochs(1, 1, ""), times=None, throughput=None, speedup=None,
                     layers=layers("cuda-emulated", "tiled", "", 1e11, 1e10, 0),
                     placement=[{"device": "cuda-emulated", "nodes": len(nodes()), "flops": 1, "time": None}],
                     roofline=None, utilisation=None, energy=None)
    result["reuse"] = [{"level": level, "reads_per_mac": figure(value, "1", "simulated"), "how": "counted"}
                       for level, value in (("shared memory", 0.25), ("global memory", 0.031))]
    return result


def array(name, simulate, base_step):
    step, kind = 0.0274, "simulated"
    return machine(
        name, "systolic", "mmu16, 16 × 16 at 200 MHz", simulate=simulate, threads=1,
        epochs=epochs(16 * step, 0.021, kind), times=times(step, 0.00134, kind),
        throughput=figure(4 / step, "image/s", kind),
        speedup={"value": (16 * base_step) / (16 * step), "kinds": ["measured", kind], "of": "epoch"},
        layers=layers("systolic", "mmu", kind, 1e11, 3e9, 8e-6),
        placement=[{"device": "systolic", "nodes": 70, "flops": 3 * 10**8, "time": figure(0.021, "s", kind)},
                   {"device": "cpu", "nodes": 43, "flops": 10**7, "time": figure(0.0064, "s", "measured")}],
        roofline={"peak": figure(1.024e11, "FLOP/s", kind), "memory": figure(3.2e9, "byte/s", kind),
                  "levels": [{"name": "unified buffer", "bandwidth": figure(6.4e9, "byte/s", kind)}],
                  "source": "machine description"},
        utilisation=utilisation(step, kind, 1.024e11, 1.31),
        reuse=[{"level": level, "reads_per_mac": figure(value, "1", kind), "how": "RTL counters"}
               for level, value in (("unified buffer", 0.0664), ("weights", 0.0011), ("DRAM", 0.0142))],
        energy=energy(2.9e6, 5.8e5))


def compare():
    cpu = processor()
    step = cpu["times"]["step"]["value"]
    machines = [cpu, emulated(), array("systolic (twin)", "twin", step), array("systolic (RTL)", "rtl", step),
                {"name": "cuda", "backend": "cuda", "available": False, "reason": "no GPU here: no driver of NVIDIA is loaded",
                 "remedy": "run on a machine with a GPU, or leave cuda out of --backends"}]
    results = {
        "experiment": {"model": {"architecture": "unet", "base": 8, "depth": 3, "size": 64, "classes": 2},
                       "model_name": "unet-s", "data": "synthetic", "images": {"train": 64, "validation": 8},
                       "seed": 1, "epochs": 2, "batch": 4, "contract": "bf16-exact", "optimizer": "adam",
                       "learning_rate": 0.005,
                       "commands": ["triptych compare --model unet-s --backends cpu,cuda-emulated,systolic "
                                    "--data synthetic --epochs 2 --contract bf16-exact --out report.html"]},
        "machines": machines,
        "verdict": {"identical": True, "losses": True, "weights": True, "masks": True,
                    "machines": [m["name"] for m in machines if m["available"]], "first_difference": None},
        "recorded": [{"machine": "NVIDIA H200", "date": "2026-10-02", "commit": "3f2a9c81b7", "file": "recorded/h200.json",
                      "results": [{"name": "unet-m, training step, batch 16", "value": figure(0.00231, "s", "recorded")},
                                  {"name": "matmul 4096, bf16", "value": figure(6.31e14, "FLOP/s", "recorded")}]}],
        "energy_table": [{"event": "bf16 multiply-add", "joule": 1.1e-12, "source": "Horowitz, ISSCC 2014, scaled"},
                         {"event": "read of 4 bytes, 32 KiB of SRAM", "joule": 5e-12, "source": "Horowitz, ISSCC 2014"},
                         {"event": "read of 4 bytes, DRAM", "joule": 6.4e-10, "source": "Horowitz, ISSCC 2014"}],
        "notes": ["no GPU here: no driver of NVIDIA is loaded; cuda-emulated checks the bits of its kernels",
                  "times of cpu are medians of 5 steps on a machine with other work"]}
    return {"schema": 1, "command": "compare", "environment": ENVIRONMENT, "results": results}


def different():
    """Two contracts: the machines part in the first layer. The user's names are hostile."""
    report = compare()
    results = report["results"]
    evil = "</script><script>document.title='broken'</script>&\"'<b>"
    results["experiment"]["model_name"] = evil
    results["experiment"]["data"] = "/home/ü/" + evil
    results["experiment"]["commands"] = ["triptych compare --data '" + evil + "'"]
    results["notes"].append(evil)
    other = results["machines"][2]
    other["contract"] = "bf16"
    other["losses"] = [loss * (1 + 0.004 * i) for i, loss in enumerate(other["losses"])]
    other["weights_sha256"] = "7f" * 32
    other["masks"] = masks(2)
    other["name"] = evil
    for mask in other["masks"]:
        mask["different_pixels"] = 131
        mask["image"] = evil
    results["machines"] = [results["machines"][0], other]
    results["verdict"] = {
        "identical": False, "losses": False, "weights": False, "masks": False, "machines": ["cpu", evil],
        "first_difference": {"machines": ["cpu", evil], "step": 1, "node": "down1.conv0", "output": 0, "element": 17,
                             "values": [0.123456789, 0.123456791], "different_elements": 812, "of": 131072,
                             "why": "contracts differ: bf16-exact and bf16"}}
    return report


def nothing():
    """Report of an interrupted or tiny comparison: one machine without anything, nulls elsewhere."""
    report = compare()
    bare = {key: None for key in processor()}
    bare.update(name="cpu", backend="cpu", available=True, checks_bits_only=False)
    report["results"] = {"experiment": {}, "machines": [bare], "verdict": None, "recorded": [], "energy_table": [],
                         "notes": []}
    return report


def reproduce():
    batches = [1, 2, 4, 8, 16, 32, 64]
    curves = [("cpu", "measured", lambda n: 1.0), ("systolic, with transfers", "simulated", lambda n: 0.9 * n / (n + 3)),
              ("rtx2070super, with transfers", "modelled", lambda n: 24 * n / (n + 11))]
    chart = {"id": "speedup-by-batch", "title": "Speedup of one convolution over the CPU", "kind": "line",
             "x": {"label": "batch", "unit": "count", "scale": "log"},
             "y": {"label": "speedup over cpu", "unit": "x", "scale": "linear"},
             "series": [{"name": name, "kind": kind, "points": [{"x": n, "y": speedup(n)} for n in batches]}
                        for name, kind, speedup in curves],
             "lines": [{"name": "as fast as the CPU", "points": [[1, 1], [64, 1]]}]}
    bars = {"id": "bandwidth", "title": "Copy bandwidth by level", "kind": "bars",
            "x": {"label": "level", "unit": "", "scale": "linear"},
            "y": {"label": "bandwidth", "unit": "byte/s", "scale": "log"},
            "series": [{"name": "cpu", "kind": "measured", "points": [
                {"x": "L1", "y": 4.1e11}, {"x": "L2", "y": 1.6e11}, {"x": "memory", "y": 2.2e10}]},
                {"name": "h200", "kind": "recorded", "points": [{"x": "shared memory", "y": 3.3e13}, {"x": "memory", "y": 4.2e12}]}]}
    claims = [
        {"id": "speedup-grows-with-batch", "claim": "The speedup of the GPU over the CPU grows with the batch size.",
         "source": "Survey of accelerators, figure 3", "verdict": "holds under these conditions",
         "why": "From batch 1 to 64 it grows from 2.0 to 20.5, then the transfers bound it. Below a batch of 1 it loses.",
         "commands": ["triptych bench conv --batch 1,2,4,8,16,32,64 --layer unet-l:down1.conv1 --backends cpu,systolic"],
         "charts": [chart],
         "tables": [{"title": "Break-even", "columns": [{"name": "machine", "unit": ""}, {"name": "batch", "unit": "count"},
                                                         {"name": "time there", "unit": "s"}],
                     "rows": [["systolic", None, None], ["rtx2070super", 1, figure(0.0021, "s", "modelled")]]}]},
        {"id": "sram-against-hbm", "title": "SRAM against HBM", "claim": "SRAM is about ten times as fast as HBM, at 19 TB/s.",
         "source": "Survey of accelerators, figure 1", "verdict": "out of date", "why": "On an H200 it is about seven times.",
         "commands": ["triptych bench bandwidth"], "charts": [bars], "tables": []},
        {"id": "tpu-reuse", "claim": "A TPU reads each operand once.", "source": "Report, section 2", "verdict": "holds here",
         "why": "Each weight is loaded once per tile.", "commands": [], "charts": [], "tables": []}]
    return {"schema": 1, "command": "reproduce", "environment": ENVIRONMENT,
            "results": {"claims": claims, "summary": {"holds here": 1, "holds under these conditions": 1, "out of date": 1, "wrong": 0}}}


def without_times(report):
    """Only bits: no machine has a time."""
    report = copy.deepcopy(report)
    for one in report["results"]["machines"]:
        one["checks_bits_only"] = True
    return report
