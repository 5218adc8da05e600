#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's times for what gpu_session.sh measures, in the same session:

  torch_rivals.py products|attention|copy|convolutions|eager|compiled [--rehearse]

One JSON object a line, as soon as it is known: name and seconds (the median; of a step as waited
for, of all else by the GPU's clock), or the reason why not. products: torch.matmul in float32
without TF32, of operands that are bfloat16, and with the rounding of float32 operands. attention:
scaled_dot_product_attention by its flash kernel (bf16), its efficient one (f32). convolutions: U-Net
L's 3x3 layers with 8 images, forward and both gradients, channels last, bf16 and float32 without
TF32. eager, compiled: training steps of U-Net L (8 images, channels last, autocast to bfloat16) and
of U-Net S (one image, float32).

--rehearse runs the same calls on the processor with sides 16 times shorter and few repeats: whether
they work, where there is no GPU. Its seconds say nothing.
"""
import json
import statistics
import sys
import time

import torch
from torch import nn

REHEARSAL = "--rehearse" in sys.argv
DEVICE = "cpu" if REHEARSAL else "cuda"


def side(full):
    """Of a matrix, a sequence or an image."""
    return full // 16 if REHEARSAL else full


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


def wait():
    if not REHEARSAL:
        torch.cuda.synchronize()


def median_seconds(run, repeats):
    """Of one run, each waited for: what a user of a step waits."""
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def median_kernel_seconds(run, repeats, together=10):
    """Of one run on the GPU, by its own clock: Python's time to launch it is hidden."""
    if REHEARSAL:
        return median_seconds(run, repeats)
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for _ in range(together):
            run()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e-3 / together)
    return statistics.median(times)


def training_step(base, depth, size, batch, half, compiled):
    """One update by Adam, as a function without arguments."""
    torch.manual_seed(0)
    net = UNet(base, depth).to(DEVICE)
    layout = torch.channels_last if half else torch.contiguous_format
    net = net.to(memory_format=layout)
    x = torch.randn(batch, 1, size, size, device=DEVICE).to(memory_format=layout)
    target = (torch.rand(batch, 1, size, size, device=DEVICE) > 0.5).float()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=not REHEARSAL)
    forward = torch.compile(net) if compiled else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=half):
            loss = nn.functional.binary_cross_entropy_with_logits(forward(x), target)
        loss.backward()
        optimizer.step()
    return step


def say(name, run, repeats=20, clock=median_kernel_seconds, **more):
    try:
        line = {"name": name, "seconds": clock(run(), 1 if REHEARSAL else repeats), **more}
    except Exception as error:  # a missing compiler or memory is also a result
        line = {"name": name, "problem": str(error)[:400]}
    print(json.dumps(line), flush=True)


def products():
    def operands(size, dtype):
        return (torch.randn(size, size, device=DEVICE).to(dtype) for _ in range(2))

    def product(size, dtype):
        a, b = operands(size, dtype)
        return lambda: torch.matmul(a, b)

    def rounding(size):
        a, b = operands(size, torch.float32)
        return lambda: torch.matmul(a.bfloat16(), b.bfloat16()).float()
    for size in (4096, 8192):
        say(f"matmul_bf16_{size}", lambda: product(side(size), torch.bfloat16))
        say(f"matmul_bf16_rounding_{size}", lambda: rounding(side(size)))
    say("matmul_f32_4096", lambda: product(side(4096), torch.float32))


def attention():
    def run_of(length, dtype, backend):
        from torch.nn.attention import SDPBackend, sdpa_kernel  # since PyTorch 2.3
        q, k, v = (torch.randn(1, 16, length, 128, device=DEVICE, dtype=dtype) for _ in range(3))

        def run():
            with sdpa_kernel(getattr(SDPBackend, backend)):
                nn.functional.scaled_dot_product_attention(q, k, v)
        return run
    for length in (1024, 2048, 4096, 8192):
        say(f"attention_bf16_{length}",
            lambda: run_of(side(length), torch.bfloat16, "FLASH_ATTENTION"))
        say(f"attention_f32_{length}",
            lambda: run_of(side(length), torch.float32, "EFFICIENT_ATTENTION"))


def copy():
    floats = side(1 << 28)

    def run_of():
        source, target = torch.randn(floats, device=DEVICE), torch.empty(floats, device=DEVICE)
        return lambda: target.copy_(source)
    say("copy", run_of, bytes=2 * 4 * floats)


def layers(base=64, depth=4, size=256):
    """(name, input channels, output channels, side) of the 3x3 convolutions of `unet-l`."""
    found = []
    for level in range(depth + 1):
        outputs, pixels = base << level, side(size) >> level
        name = "bottom" if level == depth else f"down{level + 1}"
        found.append((f"{name}.conv0", outputs // 2 if level else 1, outputs, pixels))
        found.append((f"{name}.conv1", outputs, outputs, pixels))
        if level < depth:
            found.append((f"up{level + 1}.conv0", 2 * outputs, outputs, pixels))
            found.append((f"up{level + 1}.conv1", outputs, outputs, pixels))
    return found


def convolutions(batch=8):
    def run_of(layer, dtype, wanted):
        """wanted: the gradients that are computed, of x and of the weights; None: forward."""
        _, inputs, outputs, pixels = layer

        def random(*shape):
            return torch.randn(*shape, device=DEVICE).to(
                dtype=dtype, memory_format=torch.channels_last)
        x, w = random(batch, inputs, pixels, pixels), random(outputs, inputs, 3, 3)
        dy = random(batch, outputs, pixels, pixels)
        if wanted is None:
            return lambda: nn.functional.conv2d(x, w, padding=1)
        return lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [*wanted, False])
    for name, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        for layer in layers():
            for direction, wanted in (("forward", None), ("data", (True, False)),
                                      ("weights", (False, True))):
                say(f"conv_{name}_{layer[0]}_{direction}",
                    lambda: run_of(layer, dtype, wanted), repeats=10)


def steps(compiled):
    how = "compiled" if compiled else "eager"
    say(f"unet_l_{how}", lambda: training_step(base=64, depth=4, size=side(256), batch=8, half=True,
                                               compiled=compiled), clock=median_seconds)
    say(f"unet_s_{how}", lambda: training_step(base=8, depth=3, size=max(16, side(64)), batch=1,
                                               half=False,
                                               compiled=compiled), repeats=50, clock=median_seconds)


def main(what):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(json.dumps({"name": "versions", "torch": torch.__version__, "cuda": torch.version.cuda,
                      "cudnn": torch.backends.cudnn.version(),
                      "gpu": "none" if REHEARSAL else torch.cuda.get_device_name()}), flush=True)
    {"products": products, "attention": attention, "copy": copy, "convolutions": convolutions,
     "eager": lambda: steps(False), "compiled": lambda: steps(True)}[what]()


if __name__ == "__main__":
    main(sys.argv[1])
