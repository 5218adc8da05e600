"""Networks that PyTorch exports give PyTorch's outputs, with sizes left open where they may be.

Usage: pytorch_test.py PROGRAM
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("skipped: python3-torch is missing (apt-get install python3-torch)")
    sys.exit(77)

warnings.filterwarnings("ignore")
IMAGES = {0: "batch", 2: "height", 3: "width"}


class Block(nn.Module):
    """An encoder and a decoder of one level. Their skip does not fit without a pad."""

    def __init__(self, mode, **options):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Conv2d(11, 2, 1)
        self.up = {"mode": mode, **options}

    def forward(self, x):
        up = F.interpolate(self.inner(F.max_pool2d(x, 2)), scale_factor=2, **self.up)
        up = F.pad(up, [0, x.size(3) - up.size(3), 0, x.size(2) - up.size(2)])
        return self.head(torch.cat([x, up], 1)).softmax(1)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.GroupNorm(4, 16), nn.Hardswish())
        self.wide = nn.Sequential(nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=16), nn.InstanceNorm2d(16, affine=True))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        h = F.avg_pool2d(F.pad(self.stem(x), (1, 1, 1, 1), mode="reflect"), 3, 2, ceil_mode=True)
        h = h[:, :, :, 1:] + F.silu(self.wide(h))[:, :, :, 1:]
        return F.log_softmax(self.head(F.adaptive_avg_pool2d(h, 1).flatten(1)), -1)


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(50, 16), nn.Embedding(20, 16)
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, words):
        h = self.norm(self.word(words) + self.place(torch.arange(words.size(1))[None]))
        mask = torch.full((words.size(1), words.size(1)), float("-inf")).triu(1)
        return self.attention(h, h, h, attn_mask=mask)[0]


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.MaxPool3d(2), nn.LeakyReLU())
        self.up = nn.ConvTranspose3d(4, 2, 2, 2)

    def forward(self, x):
        return self.up(self.down(x))


def networks():
    """(name, network, input, axes that are open, operator set)"""
    for opset in (11, 13, 16):
        for mode, options in (("nearest", {}), ("bilinear", {"align_corners": True}), ("bicubic", {})):
            yield f"{mode} {opset}", Block(mode, **options), torch.randn(2, 3, 17, 20), IMAGES, opset
    encoder = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
    yield "encoder", nn.TransformerEncoder(encoder, 2), torch.randn(2, 7, 32), {0: "batch"}, 13
    yield "residual", Residual(), torch.randn(2, 3, 33, 40), {0: "batch"}, 13
    yield "text", Text(), torch.randint(0, 50, (2, 9)), {0: "batch"}, 14
    yield "volume", Volume(), torch.randn(1, 2, 8, 8, 6), {}, 13
    yield "pixels", nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.PixelShuffle(2)), torch.randn(1, 1, 6, 6), IMAGES, 13
    for layer in (nn.LSTM, nn.GRU, nn.RNN):
        yield layer.__name__, layer(5, 6, 2, bidirectional=True), torch.randn(4, 2, 5), {}, 13


def problem_of(program, network, x, axes, opset):
    network.eval()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch.onnx.export(network, x, str(folder / "m.onnx"), opset_version=opset, input_names=["x"],
                          dynamic_axes={"x": axes})
        expected = network(x)
        expected = (expected[0] if isinstance(expected, tuple) else expected).detach()
        numpy.save(folder / "x.npy", x.numpy())
        command = [program, "run", str(folder / "m.onnx"), "--input", str(folder / "x.npy"), "--out",
                   str(folder / "out"), "--threads", "1"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if result.returncode != 0:
            return result.stderr.strip()
        got = numpy.load(folder / "out/output_0.npy")
    same = got.shape == tuple(expected.shape) and numpy.allclose(got, expected.numpy(), 1e-5, 1e-5)
    return "" if same else "other numbers"


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    failed = 0
    for name, *rest in networks():
        problem = problem_of(sys.argv[1], *rest)
        failed += problem != ""
        print(f"{name}: {problem or 'passed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
