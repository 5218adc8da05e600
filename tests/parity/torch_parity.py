#!/usr/bin/env python3
"""Repeats a recorded training of unet-s in PyTorch and compares losses and first gradients.

  torch_parity.py TRAINING_RECORD_PROGRAM sgd|adam plain|winograd

Bars: every loss within 1e-3 relative, every parameter's first gradient within 1e-4 relative by norm.
With Winograd's transforms the gradients are printed only: where a value before a ReLU is 0 up to
rounding, another rounding gives another gradient, and one such element in a million is seen.
Exit status: 0 passed, 1 failed, 77 skipped because PyTorch is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import struct
import subprocess
import sys
import tempfile

STEPS, BATCH = 50, 4
LOSS_BAR, GRADIENT_BAR = 1e-3, 1e-4

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error} (apt-get install python3-torch python3-numpy)")
    sys.exit(77)


def load_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", name
        values = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors, metadata


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv0 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn0 = nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = torch.relu(self.bn0(self.conv0(x)))
        return torch.relu(self.bn1(self.conv1(x)))


class Up(Block):
    def __init__(self, inputs, outputs):
        super().__init__(2 * outputs, outputs)
        self.transpose = nn.ConvTranspose2d(inputs, outputs, 2, 2)

    def forward(self, x, skip):
        return super().forward(torch.cat([skip, self.transpose(x)], 1))


class UNet(nn.Module):
    """Parameters are named as in Triptych, so that recorded ones can be loaded by name."""

    def __init__(self, base=8, depth=3):
        super().__init__()
        self.depth = depth
        channels = [base << level for level in range(depth + 1)]
        for level in range(1, depth + 1):
            self.add_module(f"down{level}", Block(1 if level == 1 else channels[level - 2],
                                                  channels[level - 1]))
            self.add_module(f"up{level}", Up(channels[level], channels[level - 1]))
        self.bottom = Block(channels[depth - 1], channels[depth])
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        skips = []
        for level in range(1, self.depth + 1):
            skips.append(self.get_submodule(f"down{level}")(x))
            x = torch.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for level in range(self.depth, 0, -1):
            x = self.get_submodule(f"up{level}")(x, skips[level - 1])
        return self.head(x)


def compare(record, metadata, kind, sums):
    net = UNet()
    prefix = "parameter."
    parameters = {k[len(prefix):]: v for k, v in record.items() if k.startswith(prefix)}
    missing = net.load_state_dict(parameters, strict=False)
    assert not missing.unexpected_keys, missing
    assert all("running" in k or "num_batches" in k for k in missing.missing_keys), missing
    rate = float(metadata["learning_rate"])
    optimizer = (torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9) if kind == "sgd"
                 else torch.optim.Adam(net.parameters(), lr=rate))
    worst_loss, worst_gradient = 0.0, ("", 0.0)
    for step in range(STEPS):
        loss = nn.functional.binary_cross_entropy_with_logits(net(record[f"x.{step}"]),
                                                              record[f"target.{step}"])
        optimizer.zero_grad()
        loss.backward()
        ours = record["losses"][step].item()
        worst_loss = max(worst_loss, abs(ours - loss.item()) / abs(loss.item()))
        if step == 0:
            for name, parameter in net.named_parameters():
                difference = (record["gradient." + name] - parameter.grad).norm()
                relative = (difference / parameter.grad.norm()).item()
                worst_gradient = max(worst_gradient, (name, relative), key=lambda pair: pair[1])
        optimizer.step()
    first, last = record["losses"][0].item(), record["losses"][-1].item()
    print(f"{kind}, {sums}: loss {first:.4f} -> {last:.4f}; worst relative distance of a loss "
          f"{worst_loss:.2e} (bar {LOSS_BAR:.0e}), of a first gradient {worst_gradient[1]:.2e} "
          f"in {worst_gradient[0]} (bar {GRADIENT_BAR:.0e}); PyTorch {torch.__version__}")
    gradients_fit = sums == "winograd" or worst_gradient[1] <= GRADIENT_BAR
    return last < first and worst_loss <= LOSS_BAR and gradients_fit


def main():
    program, kind, sums = sys.argv[1:4]
    torch.set_num_threads(1)
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        subprocess.run([program, file.name, kind, str(STEPS), str(BATCH), sums], check=True)
        record, metadata = load_safetensors(file.name)
    return 0 if compare(record, metadata, kind, sums) else 1


if __name__ == "__main__":
    sys.exit(main())
