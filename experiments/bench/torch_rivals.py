#!/usr/bin/env python3
"""PyTorch's times for what gpu_session.sh measures, in the same session: a device copy, U-Net L's
training step with 8 images (channels last, autocast to bfloat16), eager and compiled, and U-Net S's
with one image (float32 without TF32), eager. Prints one JSON object: seconds, medians of runs that
are each waited for; where something cannot be measured, the reason.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import statistics
import time

import torch
from torch import nn


class Block(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """The network of `triptych train --model unet-*`."""

    def __init__(self, base, depth):
        super().__init__()
        channels = [base << level for level in range(depth + 1)]
        self.downs = nn.ModuleList(Block(1 if i == 0 else channels[i - 1], channels[i])
                                   for i in range(depth))
        self.bottom = Block(channels[depth - 1], channels[depth])
        self.transposes = nn.ModuleList(nn.ConvTranspose2d(channels[i + 1], channels[i], 2, 2)
                                        for i in reversed(range(depth)))
        self.ups = nn.ModuleList(Block(2 * channels[i], channels[i])
                                 for i in reversed(range(depth)))
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            skips.append(down(x))
            x = torch.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for transpose, up, skip in zip(self.transposes, self.ups, reversed(skips)):
            x = up(torch.cat([skip, transpose(x)], 1))
        return self.head(x)


def median_seconds(run, repeats):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def training_step(base, depth, size, batch, half, compiled):
    """One update by Adam, as a function without arguments."""
    torch.manual_seed(0)
    net = UNet(base, depth).cuda()
    layout = torch.channels_last if half else torch.contiguous_format
    net = net.to(memory_format=layout)
    x = torch.randn(batch, 1, size, size, device="cuda").to(memory_format=layout)
    target = (torch.rand(batch, 1, size, size, device="cuda") > 0.5).float()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    forward = torch.compile(net) if compiled else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            loss = nn.functional.binary_cross_entropy_with_logits(forward(x), target)
        loss.backward()
        optimizer.step()
    return step


def measured(run):
    try:
        return run()
    except Exception as error:  # a compiler or memory that is missing is a result, too
        return f"not measured: {error}"


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    floats = 1 << 28
    source, target = torch.randn(floats, device="cuda"), torch.empty(floats, device="cuda")
    copy = median_seconds(lambda: target.copy_(source), 20)
    del source, target
    unet_l = dict(base=64, depth=4, size=256, batch=8, half=True)
    unet_s = dict(base=8, depth=3, size=64, batch=1, half=False)
    print(json.dumps({
        "torch": torch.__version__, "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name(),
        "copy_bytes_per_second": 2 * 4 * floats / copy,
        "unet_l_eager": measured(
            lambda: median_seconds(training_step(**unet_l, compiled=False), 20)),
        "unet_l_compiled": measured(
            lambda: median_seconds(training_step(**unet_l, compiled=True), 20)),
        "unet_s_eager": measured(
            lambda: median_seconds(training_step(**unet_s, compiled=False), 50)),
    }))


if __name__ == "__main__":
    main()
