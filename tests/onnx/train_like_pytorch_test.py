"""Networks that PyTorch exports train to PyTorch's losses, and leave again with PyTorch's outputs.

Usage: train_like_pytorch_test.py PROGRAM
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("skipped: python3-torch is missing (apt-get install python3-torch)")
    sys.exit(77)

warnings.filterwarnings("ignore")
SIDE, IMAGES, STEPS, RATE = 32, 4, 20, 0.01


def double(inside, outside, norm):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), norm(outside), nn.ReLU(),
                         nn.Conv2d(outside, outside, 3, padding=1), norm(outside), nn.ReLU())


class UNet(nn.Module):
    """Two levels. `up` doubles the sides."""

    def __init__(self, up, norm=nn.BatchNorm2d, classes=1):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, 8, norm), double(8, 16, norm), double(16, 32, norm)
        self.up2, self.up1 = up(32, 16), up(16, 8)
        self.dec2, self.dec1 = double(32, 16, norm), double(16, 8, norm)
        self.head = nn.Conv2d(8, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        d = self.dec2(torch.cat([b, self.up2(c)], 1))
        return self.head(self.dec1(torch.cat([a, self.up1(d)], 1)))


def transposed(inside, outside):
    return nn.ConvTranspose2d(inside, outside, 2, 2)


def nearest(inside, outside):
    return nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(inside, outside, 1))


def bilinear(inside, outside):
    return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                         nn.Conv2d(inside, outside, 1))


def groups(channels):
    return nn.GroupNorm(4, channels)


class Residual(nn.Module):
    """Dilated convolutions, by groups, and a sum with the input."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.body = nn.Sequential(nn.BatchNorm2d(16), nn.LeakyReLU(0.1),
                                  nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=4), nn.BatchNorm2d(16),
                                  nn.SiLU(), nn.Conv2d(16, 16, 1))
        self.head = nn.Conv2d(16, 3, 1)

    def forward(self, x):
        h = self.stem(x)
        return self.head(F.relu(h + self.body(h)))


def networks():
    yield "U-Net, transposed convolutions", UNet(transposed)
    yield "U-Net, nearest", UNet(nearest)
    yield "U-Net, bilinear", UNet(bilinear)
    yield "U-Net of three classes, normalised by groups", UNet(transposed, groups, 3)
    yield "residual", Residual()


def save_png(path, image):
    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *image.shape[::-1], 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_data(folder, classes):
    """Images of one batch, which every step draws whole, with their values and classes."""
    random = numpy.random.default_rng(1)
    labels = random.integers(0, max(2, classes), (IMAGES, SIDE, SIDE), dtype=numpy.uint8)
    labels[:, 8:24, 8:24] = 1
    noise = random.integers(0, 100, labels.shape, dtype=numpy.uint8)
    images = (labels * 60 + noise).astype(numpy.uint8)
    for name, planes, scale in (("images", images, 1), ("masks", labels, 1)):
        (folder / name).mkdir(parents=True)
        for i, plane in enumerate(planes):
            save_png(folder / name / f"{i}.png", plane * scale)
    return images, labels


def torch_losses(network, images, labels):
    x = torch.from_numpy(images.astype(numpy.float32))[:, None] / 255
    x = (x - x.mean()) / x.std(unbiased=False)
    y = torch.from_numpy(labels.astype(numpy.int64))
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), RATE, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = network(x)
        if logits.shape[1] == 1:
            loss = F.binary_cross_entropy_with_logits(logits[:, 0], y.float())
        else:
            loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        raise RuntimeError(f"{arguments}\n{result.stdout}{result.stderr}")
    return result.stdout


# The exporter that PyTorch has had since 2.5 computes weights beforehand, which are then no weights any more.
EXPORTER = {"dynamo": False} if "dynamo" in torch.onnx.export.__code__.co_varnames else {}


def problem_of(program, network, folder):
    network.eval()
    torch.onnx.export(network, torch.randn(1, 1, SIDE, SIDE), str(folder / "m.onnx"), opset_version=15,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, input_names=["image"],
                      dynamic_axes={"image": {0: "batch", 2: "height", 3: "width"}}, **EXPORTER)
    classes = network.head.out_channels
    images, labels = make_data(folder / "data", classes)
    values = ",".join(str(c) for c in range(max(2, classes)))
    text = run(program, "train", "--model", folder / "m.onnx", "--data", folder / "data", "--size", SIDE, "--batch",
               IMAGES, "--steps", STEPS, "--validation", 0, "--augmentation", "none", "--labels", values,
               "--optimizer", "sgd", "--momentum", 0.9, "--lr", RATE, "--schedule", "constant", "--loss", "cross-entropy",
               "--statistics-batches", 0, "--out", folder / "run", "--threads", 1, "--json")
    got = json.loads(text)["results"][0]["losses"]
    expected = torch_losses(network, images, labels)
    worst = max(abs(a - b) / b for a, b in zip(got, expected))
    if len(got) != STEPS or not worst <= 1e-3:
        return f"losses differ by {worst:.2e}: {got} instead of {expected}"
    run(program, "export", folder / "run", "--out", folder / "out.onnx", "--pixels", "normalized")
    x = torch.randn(2, 1, SIDE, SIDE)
    numpy.save(folder / "x.npy", x.numpy())
    run(program, "run", folder / "out.onnx", "--input", folder / "x.npy", "--out", folder / "y", "--threads", 1)
    logits = network.eval()(x).detach().numpy()
    difference = abs(numpy.load(folder / "y/output_0.npy") - logits).max()
    if not difference <= 1e-2:
        return f"after training, outputs differ by {difference:.2e}"
    print(f"  losses within {worst:.1e}, outputs within {difference:.1e}")
    return ""


def judge(problems):
    """Prints each network's name and what its function finds wrong in a folder of its own; 1 if anything is."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    failed = 0
    for name, problem_in in problems:
        with tempfile.TemporaryDirectory() as folder:
            problem = problem_in(pathlib.Path(folder))
        failed += problem != ""
        print(f"{name}: {problem or 'passed'}")
    return 1 if failed else 0


def main():
    return judge((name, lambda folder, network=network: problem_of(sys.argv[1], network, folder))
                 for name, network in networks())


if __name__ == "__main__":
    sys.exit(main())
