"""Judges the bars of a GPU session by its document, as far as it has come.

A bar stands for work that both sides did in the same session: ours over the rival's, and what of
it is the least. One whose sides were not both measured is open. A part's bars are judged when that part
is asked for.
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import json
import re

import gpu_items

# Passes over a tensor that an algorithm makes, where `bytes` counts each operand once: of batch
# normalisation two of x for the statistics and then x and y; of its gradient x and dy for the sums
# and then x, dy and dx.
PASSES_OVER_ONCE = {"BatchNormalization": 4 / 2, "BatchNormalizationGradient": 5 / 3}
MEMORY_BOUND = ("Relu", "ReluGradient", *PASSES_OVER_ONCE, "MaxPool", "MaxPoolGradient",
                "FusedElementwise", "Concat", "AdamUpdate")


class Seen:
    """Results of the items of a document."""

    def __init__(self, document):
        self.items = {item["name"]: item for item in document["items"]}
        self.machine = document["machine"]
        self.rivals = {line["name"]: line for name, item in self.items.items()
                       if name.startswith("torch_") for line in torch_lines(item)}

    def rows(self, name):
        """The rows of a document of `triptych ... --json`; none where the item gave none."""
        return self.items.get(name, {}).get("result", {}).get("results", [])

    def rival(self, name, field="seconds"):
        """One of PyTorch's measurements, or None."""
        return self.rivals.get(name, {}).get(field)

    def why_missing(self, *names):
        for name in names:
            item = self.items.get(name, {})
            if "not_run" in item:
                return f"{name}: {item['not_run']}"
            if item.get("exit_code"):
                return f"{name}: exit code {item['exit_code']}"
        return "not measured in this session"


def torch_lines(item):
    """Output of torch_rivals.py before it ended: an object a line, with `name`."""
    if "result" in item:  # of one line
        return [item["result"]]
    lines = []
    for line in item.get("printed", "").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # a warning, or the line that a time-out cut
            continue
    return [line for line in lines if isinstance(line, dict) and "name" in line]


def median(row):
    return row["median"]["value"] if row.get("median") else None


def bar(what, ours, rival, least, why):
    """ours / rival, both the larger the better, against the least that is wanted."""
    ratio = ours / rival if ours and rival else None
    entry = {"what": what, "ours": ours, "rival": rival, "ratio": ratio, "at_least": least,
             "met": ratio is not None and ratio >= least}
    if ratio is None:
        entry["open"] = why
    return entry


def worst(what, ratios, least, why):
    """Every layer counts: the bar is that of the worst."""
    lowest = min(ratios.values(), default=None)
    entry = bar(what, lowest, 1.0 if ratios else None, least, why)
    entry["layers"] = dict(sorted(ratios.items(), key=lambda pair: pair[1]))
    entry["layers_met"] = sum(ratio >= least for ratio in ratios.values())
    return entry


def inverse(seconds):
    return 1 / seconds if seconds else None


def products(seen):
    """Our best kernel from float32 operands to a float32 result, roundings included."""
    bars = []
    for contract, kernels, sizes in (("bf16", ("hopper", "tensor-core", "vectorised"),
                                      (4096, 8192)), ("f32", ("vectorised",), (4096,))):
        for size in sizes:
            def seconds(kernel):
                found = [median(row) for row in seen.rows(f"matmul_{contract}_{kernel}")
                         if f"/{size}x{size}" in row["name"]]
                return found[0] if found else None
            items = [f"matmul_{contract}_{kernel}" for kernel in kernels]
            ours = min(filter(None, map(seconds, kernels)), default=None)
            rivals = [("cuBLASLt in the same program", seconds("cublaslt"), 0.9, "cublaslt")]
            rivals.append(("torch.matmul of operands that are there in bfloat16"
                           if contract == "bf16" else "torch.matmul in float32",
                           seen.rival(f"matmul_{contract}_{size}"), 0.8 if contract == "bf16" else
                           0.9, None))
            if contract == "bf16":
                rivals.append(("torch.matmul that rounds float32 operands first",
                               seen.rival(f"matmul_bf16_rounding_{size}"), 0.9, None))
            for rival, theirs, least, own in rivals:
                why = seen.why_missing(*items, *([f"matmul_{contract}_{own}"] if own else
                                                 ["torch_products"]))
                bars.append(bar(f"{contract} product {size} beside {rival}, 1/s", inverse(ours),
                                inverse(theirs), least, why))
    return bars


def attention(seen):
    """Beside PyTorch's kernels: flash in bf16, the memory-efficient one in f32."""
    bars = []
    for kernel, contract, least in (("flash-tensor-core", "bf16", 0.5), ("flash", "f32", 0.5)):
        for row in seen.rows(f"attention_{kernel}"):
            length = row["name"].split("x")[1]  # of attention/HEADSxLENGTHxSIZE
            rival = seen.rival(f"attention_{contract}_{length}")
            bars.append(bar(f"{row['name']} by {kernel} beside PyTorch's in {contract}, 1/s",
                            inverse(median(row)), inverse(rival), least,
                            seen.why_missing("torch_attention")))
    return bars or [bar("attention beside PyTorch's", None, None, 0.5,
                        seen.why_missing("attention_flash-tensor-core", "torch_attention"))]


def kernel_times(why):
    """{"cudnn": seconds} of the words "measured now: cudnn 12.5 us, implicit 30 us"."""
    match = re.match(r"measured (?:now|before): (.*)", why)
    if not match:
        return {}
    found = re.findall(r"(?:^|, )([\w-]+) ([\d.e+-]+) us", match[1])
    return {name: float(microseconds) * 1e-6 for name, microseconds in found}


def layer_of(node):
    """("up1.conv0", "data") of "grad.up1.conv0.convtranspose"; the passes are PyTorch's, too."""
    name = node["stands_for"][0]
    if not name.startswith("grad."):
        return name, "forward"
    layer = name.removeprefix("grad.").rsplit(".", 1)[0]
    return layer, "weights" if node["op"].startswith("ConvWeightGradient") else "data"


def convolutions(seen):
    """U-Net L's 3x3 layers and both gradients, each beside cuDNN's same pass."""
    bars = []
    for contract in ("bf16", "f32"):
        by_pass = {"forward": {}, "data": {}, "weights": {}}
        for document in seen.rows(f"layers_{contract}"):
            for node in document["nodes"]:
                if not re.match(r"Conv\w*\(kernel_shape=\[3, 3\]", node["op"]):
                    continue
                times = kernel_times(node["why"])
                own = [t for name, t in times.items() if not name.startswith("cudnn")]
                layer, direction = layer_of(node)
                rivals = [seen.rival(f"conv_{contract}_{layer}_{direction}"),
                          *(t for name, t in times.items() if name.startswith("cudnn"))]
                rivals = list(filter(None, rivals))
                if own and rivals:
                    by_pass[direction][layer] = min(rivals) / min(own)
        for direction, ratios in by_pass.items():
            bars.append(worst(f"{contract} 3x3 convolutions of unet-l, {direction}, beside cuDNN's "
                              "fastest (channels innermost), worst layer", ratios, 0.85,
                              seen.why_missing(f"layers_{contract}", "torch_convolutions")))
    return bars


def copy_rate(seen):
    """Bytes per second, read and written, of the fastest copy that was seen."""
    rates = []
    if seen.rival("copy"):
        rates.append(seen.rival("copy", "bytes") / seen.rival("copy"))
    for row in seen.rows("bandwidth"):
        for level in row.get("levels", []):
            if level.get("level") == "memory" and level.get("copy"):
                rates.append(level["copy"]["value"])
    return max(rates, default=None)


def l2_bytes(seen):
    for device in seen.machine.get("devices", []):
        return int(device["properties"].get("l2_bytes", 0))
    return 0


def memory(seen):
    """Memory-bound nodes of a training step whose bytes exceed four times L2, each of them."""
    operators = {node["node"]: node["op"].split("(")[0] for document in seen.rows("layers_bf16")
                 for node in document["nodes"]}
    copy, least_bytes = copy_rate(seen), 4 * l2_bytes(seen)
    ratios = {}
    for row in seen.rows("step_unet_l"):
        for layer in row.get("layers", []):
            kind, seconds = operators.get(layer["node"]), layer["time"]["value"]
            moved = layer["bytes"] * PASSES_OVER_ONCE.get(kind, 1)
            if kind in MEMORY_BOUND and seconds and copy and layer["bytes"] > least_bytes:
                ratios.setdefault(kind, {})[layer["node"]] = moved / seconds / copy
    what = "beside the fastest device copy, bytes/s that the algorithm moves"
    why = seen.why_missing("step_unet_l", "layers_bf16", "bandwidth")
    return [worst(f"memory-bound {kind} {what}, worst node", nodes, 0.85, why)
            for kind, nodes in ratios.items()] or [
                bar(f"memory-bound kernels {what}", None, None, 0.85, why)]


def steps(seen):
    """Training steps: the rival's seconds over ours."""
    bars = []
    for what, item, rival, least, source in (
            ("unet-l step, batch 8, bf16, beside PyTorch eager", "step_unet_l", "unet_l_eager", 1.3,
             "torch_eager"),
            ("unet-l step, batch 8, bf16, beside torch.compile", "step_unet_l", "unet_l_compiled",
             1.0, "torch_compiled"),
            ("unet-s step, batch 1, f32, beside PyTorch eager", "step_unet_s", "unet_s_eager", 3.0,
             "torch_eager"),
            ("unet-s step, batch 1, f32, beside torch.compile", "step_unet_s", "unet_s_compiled",
             1.0, "torch_compiled")):
        ours = next((median(row) for row in seen.rows(item)), None)
        bars.append(bar(what + ", 1/s", inverse(ours), inverse(seen.rival(rival)), least,
                        seen.why_missing(item, source)))
    return bars


def ncu_counts(printed):
    """{"requests": n, ...} of ncu --csv, whose table follows lines of the program and of ncu."""
    lines = printed.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    counts = {}
    if start is None:
        return counts
    for record in csv.DictReader(lines[start:]):
        for name, metric in gpu_items.NCU.items():
            if record.get("Metric Name") == metric:
                counts[name] = float(record["Metric Value"].replace(",", ""))
    return counts


def emulated_counts(row):
    kernel = row["counters"][0]
    return {"requests": kernel["global"]["load"]["requests"],
            "sectors": kernel["global"]["load"]["sectors"],
            "wavefronts": kernel["shared"]["load"]["wavefronts"]}


def counters(seen):
    bars = []
    for step in gpu_items.LADDER:
        counted = [emulated_counts(row) for row in seen.rows(f"counted_{step}")
                   if row.get("counters")]
        profiled = ncu_counts(seen.items.get(f"ncu_{step}", {}).get("printed", ""))
        entry = {"what": f"counters of {step} as ncu's",
                 "emulated": counted[0] if counted else None, "ncu": profiled or None,
                 "met": bool(counted) and counted[0] == profiled}
        if not counted or not profiled:
            entry["open"] = seen.why_missing(f"ncu_{step}", f"counted_{step}")
        bars.append(entry)
    return bars


def bars(document):
    seen = Seen(document)
    judges = {"A": (), "B": (products, attention), "C": (convolutions, memory, steps),
              "D": (counters,)}
    return [entry for part in document["parts"] for judge in judges[part] for entry in judge(seen)]


def tell(document):
    """Prints the verdicts. 0 if every item succeeded and every bar is met, otherwise 1."""
    for entry in document["bars"]:
        state = "open" if "open" in entry else "met" if entry["met"] else "MISSED"
        ratio = entry.get("ratio")
        print(f"{state:7} {entry['what']}" + (f": {ratio:.3f}" if ratio else ""))
    failed = [item["name"] for item in document["items"] if item.get("exit_code")]
    missing = [item["name"] for item in document["items"] if "not_run" in item]
    for words, names in (("did not end well", failed), ("were not run", missing)):
        if names:
            print(f"{words}: {', '.join(names)}")
    whole = not failed and not missing and all(entry["met"] for entry in document["bars"])
    return 0 if whole else 1
