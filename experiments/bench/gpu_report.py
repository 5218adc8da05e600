#!/usr/bin/env python3
"""Puts the results of gpu_session.sh into one JSON file and judges the bars.

  gpu_report.py WORK OUT ROOT

WORK holds `phases` (name, seconds, exit code and command, by tabs) and what each phase printed. The
file is OUT/gpu-NAME-DATE.json. Exit code: 0 every phase ran and every bar is met, 1 not.
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import datetime
import json
import pathlib
import platform
import re
import subprocess
import sys

LADDER = ("naive", "coalesced", "tiled", "tiled-transposed", "tiled-padded")
NCU = {"requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
       "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
       "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"}
MEMORY_BOUND = ("Relu", "ReluGradient", "BatchNormalization", "BatchNormalizationGradient",
                "MaxPool", "MaxPoolGradient", "FusedElementwise", "AdamUpdate")


def read_phases(work):
    phases = []
    for line in (work / "phases").read_text().splitlines():
        name, seconds, code, command = line.split("\t")
        phase = {"name": name, "seconds": int(seconds), "exit_code": int(code)}
        if int(code) == 127:
            phase["not_run"] = command
        else:
            phase["command"] = command
        printed = read(work / f"{name}.out")
        try:
            phase["result"] = json.loads(printed)
        except ValueError:
            phase["printed"] = printed[-4000:]
        if int(code) != 0:
            phase["errors"] = read(work / f"{name}.err")[-4000:]
        phases.append(phase)
    return phases


def read(path):
    return path.read_text(errors="replace") if path.exists() else ""


def rows(phases, name):
    """The rows of a document of `triptych ... --json`; none where the phase gave none."""
    for phase in phases:
        if phase["name"] == name:
            return phase.get("result", {}).get("results", [])
    return []


def result(phases, name):
    return next((phase.get("result", {}) for phase in phases if phase["name"] == name), {})


def median(row):
    return row["median"]["value"] if row.get("median") else None


def bar(what, ours, rival, least, note=""):
    """ours / rival against the least that is wanted; both may be missing."""
    ratio = ours / rival if ours and rival else None
    entry = {"what": what, "ours": ours, "rival": rival, "ratio": ratio, "at_least": least,
             "met": ratio is not None and ratio >= least}
    if ratio is None:
        entry["open"] = note or "not measured in this session"
    return entry


def products(phases):
    """Rates of our best matrix product beside cuBLASLt's, per contract and size."""
    bars = []
    for contract, kernels, sizes in (("f32", ("vectorised",), (4096,)),
                                     ("bf16", ("hopper", "tensor-core", "vectorised"),
                                      (4096, 8192))):
        for size in sizes:
            def rate(kernel):
                found = [row for row in rows(phases, f"matmul_{contract}_{kernel}")
                         if f"{size}x{size}" in row["name"]]
                return found[0]["gflops"] * 1e9 if found else None
            own = [rate(kernel) for kernel in kernels]
            best = max((value for value in own if value), default=None)
            bars.append(bar(f"own {contract} matrix product {size} beside cuBLASLt, FLOP/s", best,
                            rate("cublaslt"), 0.9))
    return bars


def kernel_times(why):
    """{"cudnn": seconds} of the words "measured now: cudnn 12.5 us, implicit 30 us"."""
    match = re.match(r"measured (?:now|before): (.*)", why)
    if not match:
        return {}
    found = re.findall(r"(?:^|, )([\w-]+) ([\d.e+-]+) us", match[1])
    return {name: float(microseconds) * 1e-6 for name, microseconds in found}


def convolutions(phases):
    """U-Net L's 3x3 layers and their gradients: cuDNN's best time over ours, the worst counting."""
    bars = []
    for contract in ("f32", "bf16"):
        ratios = []
        for document in rows(phases, f"layers_{contract}"):
            for node in document["nodes"]:
                if not re.match(r"Conv\w*\(kernel_shape=\[3, 3\]", node["op"]):
                    continue
                times = kernel_times(node["why"])
                library = [t for name, t in times.items() if name.startswith("cudnn")]
                own = [t for name, t in times.items() if not name.startswith("cudnn")]
                if library and own:
                    ratios.append((min(library) / min(own), node["node"]))
        worst = min(ratios, default=(None, ""))
        entry = bar(f"own {contract} 3x3 convolutions of unet-l beside cuDNN, worst layer",
                    worst[0], 1.0 if ratios else None, 0.85)
        entry["layers"] = {name: ratio for ratio, name in ratios}
        bars.append(entry)
    return bars


def memory(phases):
    """Bytes per second of the memory-bound nodes of a training step beside a device copy."""
    copy = result(phases, "torch").get("copy_bytes_per_second")
    operators = {node["node"]: node["op"].split("(")[0]
                 for document in rows(phases, "layers_bf16") for node in document["nodes"]}
    best = {}
    for row in rows(phases, "step_unet_l"):
        for layer in row.get("layers", []):
            seconds = layer["time"]["value"]
            kind = operators.get(layer["node"])
            if kind in MEMORY_BOUND and seconds:
                best[kind] = max(best.get(kind, 0), layer["bytes"] / seconds)
    return [bar(f"memory-bound {kind} beside a device copy, bytes/s", rate, copy, 0.85)
            for kind, rate in best.items()] or [
                bar("memory-bound kernels beside a device copy", None, copy, 0.85)]


def steps(phases):
    """Training steps: the rival's seconds over ours."""
    torch = result(phases, "torch")

    def speedup(what, phase, rival, least):
        ours = next((median(row) for row in rows(phases, phase)), None)
        theirs = torch.get(rival)
        missing = theirs if isinstance(theirs, str) else ""
        theirs = theirs if isinstance(theirs, float) else None
        return bar(what, 1 / ours if ours else None, 1 / theirs if theirs else None, least, missing)
    return [speedup("unet-l step, batch 8, bf16, beside PyTorch eager, 1/s", "step_unet_l",
                    "unet_l_eager", 1.3),
            speedup("unet-l step, batch 8, bf16, beside torch.compile, 1/s", "step_unet_l",
                    "unet_l_compiled", 1.0),
            speedup("unet-s step, batch 1, f32, beside PyTorch eager, 1/s", "step_unet_s",
                    "unet_s_eager", 3.0)]


def ncu_counts(printed):
    """{"requests": n, ...} of ncu --csv, whose table follows lines of the program and of ncu."""
    lines = printed.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    counts = {}
    if start is None:
        return counts
    for record in csv.DictReader(lines[start:]):
        for name, metric in NCU.items():
            if record.get("Metric Name") == metric:
                counts[name] = float(record["Metric Value"].replace(",", ""))
    return counts


def emulated_counts(row):
    kernel = row["counters"][0]
    return {"requests": kernel["global"]["load"]["requests"],
            "sectors": kernel["global"]["load"]["sectors"],
            "wavefronts": kernel["shared"]["load"]["wavefronts"]}


def counters(phases):
    bars = []
    for step in LADDER:
        counted = [emulated_counts(row) for row in rows(phases, f"counted_{step}")
                   if row.get("counters")]
        printed = next((p.get("printed", "") for p in phases if p["name"] == f"ncu_{step}"), "")
        seen = ncu_counts(printed)
        entry = {"what": f"counters of {step} as ncu's",
                 "emulated": counted[0] if counted else None, "ncu": seen or None,
                 "met": bool(counted) and counted[0] == seen}
        if not counted or not seen:
            entry["open"] = "not measured in this session"
        bars.append(entry)
    return bars


def machine(phases):
    query = "name,driver_version,memory.total,compute_cap,clocks.max.sm"
    try:
        gpu = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                             capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        gpu = f"unknown: {error}"
    return {"gpu": gpu, "host": platform.processor() or platform.machine(),
            "system": platform.platform(), "environment": result(phases, "devices").get(
                "environment"), "devices": rows(phases, "devices")}


def main(work, out, root):
    phases = read_phases(work)
    bars = (products(phases) + convolutions(phases) + memory(phases) + steps(phases) +
            counters(phases))
    now = datetime.datetime.now(datetime.timezone.utc)
    commit = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    document = {"schema": 1, "kind": "recorded", "date": now.isoformat(timespec="seconds"),
                "commit": commit, "machine": machine(phases), "bars": bars, "phases": phases}
    name = re.sub(r"[^a-z0-9]+", "-", document["machine"]["gpu"].split(",")[0].lower()).strip("-")
    path = out / f"gpu-{name}-{now:%Y-%m-%dT%H%M%S}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    for entry in bars:
        state = "open" if "open" in entry else "met" if entry["met"] else "MISSED"
        ratio = entry.get("ratio")
        print(f"{state:7} {entry['what']}" + (f": {ratio:.3f}" if ratio else ""))
    failed = [phase["name"] for phase in phases if phase["exit_code"] != 0]
    if failed:
        print("did not run to their end:", ", ".join(failed))
    print(path)
    return 1 if failed or not all(entry["met"] for entry in bars) else 0


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument) for argument in sys.argv[1:4])))
