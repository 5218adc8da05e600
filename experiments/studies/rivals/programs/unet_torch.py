#!/usr/bin/env python3
"""U-Net's training step by PyTorch on the CPU: forward, binary cross-entropy, backward, SGD with
momentum; float32, or with `bf16` under autocast to bfloat16.
unet_torch.py train MODEL BATCH THREADS REPEATS contiguous|channels-last [bf16]

Prints one JSON object: version, seconds of each step after two that warm up, peak memory.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_rivals import UNet  # noqa: E402

MODELS = {"unet-s": (8, 3, 64), "unet-m": (32, 4, 128), "unet-l": (64, 4, 256)}


def peak_memory_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))


def make_step(model, batch, layout, half):
    torch.manual_seed(0)
    base, depth, size = MODELS[model]
    net = UNet(base, depth).to(memory_format=layout)
    x = torch.randn(batch, 1, size, size).to(memory_format=layout)
    target = (x > 0).float()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = net(x)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), target)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def main(_, model, batch, threads, repeats, layout, precision="f32"):
    torch.set_num_threads(int(threads))
    step = make_step(model, int(batch), torch.channels_last if layout == "channels-last"
                     else torch.contiguous_format, precision == "bf16")
    seconds = []
    for run in range(2 + int(repeats)):
        start = time.perf_counter()
        step()
        if run >= 2:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"version": f"{torch.__version__}, {os.environ.get('LD_LIBRARY_PATH', '')}",
                      "peak_memory_mib": peak_memory_mib(), "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
