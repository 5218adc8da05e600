"""Classifiers and encoders that PyTorch exports train to PyTorch's losses: on folders of pictures and on arrays.

Usage: train_rows_like_pytorch_test.py PROGRAM
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import json
import math
import pathlib
import sys

from train_like_pytorch_test import EXPORTER, F, judge, nn, numpy, run, save_png, torch

SIDE, IMAGES, STEPS, RATE = 32, 12, 20, 0.01
CLASSES = ("bird", "cat", "dog")
WORDS, LENGTH, WIDTH, HEADS = 50, 12, 32, 4


class Block(nn.Module):
    """A block of a ResNet. Where the sizes change, its shortcut is a convolution."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = nn.Sequential()
        if stride != 1 or inside != outside:
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.MaxPool2d(3, 2, 1), Block(16, 16, 1), Block(16, 32, 2), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(32, len(CLASSES)))


class Inverted(nn.Module):
    """Of MobileNetV3: expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(self, channels, inner):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(inner, inner, 3, padding=1, groups=inner, bias=False),
                                   nn.BatchNorm2d(inner), nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, 8, 1), nn.ReLU(),
                                     nn.Conv2d(8, inner, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


def mobilenet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), Inverted(16, 32),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 24), nn.Hardswish(),
                         nn.Linear(24, len(CLASSES)))


class Layer(nn.Module):
    """Of BERT: attention and a feed-forward part, each with a sum and a normalisation."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask, -1)
        y = (weights @ v).permute(0, 2, 1, 3).contiguous().view(x.shape)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """Like BERT, for one class of the whole by its first token, or, `each`, for a class of every token."""

    def __init__(self, each):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.pool, self.head, self.each = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4), each

    def forward(self, input_ids, attention_mask):
        place = torch.arange(input_ids.shape[1])[None]
        x = self.norm(self.words(input_ids) + self.places(place))
        mask = (1 - attention_mask[:, None, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x if self.each else torch.tanh(self.pool(x[:, 0])))


def export(network, inputs, path):
    network.eval()
    names = list(inputs)
    torch.onnx.export(network, tuple(inputs.values()), str(path), opset_version=15, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=names,
                      dynamic_axes={name: {0: "batch"} for name in names}, **EXPORTER)


def torch_losses(network, inputs, loss_of):
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), RATE, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(network(*inputs.values()))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained(program, folder, *data):
    text = run(program, "train", "--model", folder / "m.onnx", *data, "--batch", IMAGES, "--steps", STEPS,
               "--validation", 0, "--optimizer", "sgd", "--momentum", 0.9, "--lr", RATE, "--schedule", "constant",
               "--statistics-batches", 0, "--out", folder / "run", "--threads", 1, "--json")
    return json.loads(text)["results"][0]["losses"]


def problem_of(got, expected):
    worst = max(abs(a - b) / b for a, b in zip(got, expected))
    if len(got) != STEPS or not worst <= 1e-3:
        return f"losses differ by {worst:.2e}: {got} instead of {expected}"
    print(f"  losses within {worst:.1e}, from {got[0]:.4f} to {got[-1]:.4f}")
    return ""


def problem_of_pictures(program, network, folder):
    random = numpy.random.default_rng(2)
    labels = numpy.arange(IMAGES) % len(CLASSES)
    grey = (random.integers(0, 120, (IMAGES, SIDE, SIDE)) + 60 * labels[:, None, None]).astype(numpy.uint8)
    for i, image in enumerate(grey):
        (folder / "data" / CLASSES[labels[i]]).mkdir(parents=True, exist_ok=True)
        save_png(folder / "data" / CLASSES[labels[i]] / f"{i}.png", image)
    x = torch.from_numpy(grey.astype(numpy.float32))[:, None].repeat(1, 3, 1, 1) / 255
    x = (x - x.mean()) / x.std(unbiased=False)
    y = torch.from_numpy(labels)
    export(network, {"image": x[:1]}, folder / "m.onnx")
    got = trained(program, folder, "--data", folder / "data")
    problem = problem_of(got, torch_losses(network, {"image": x}, lambda logits: F.cross_entropy(logits, y)))
    if problem:
        return problem
    run(program, "evaluate", folder / "run", "--data", folder / "data", "--out", folder / "judged")
    rows = list(csv.DictReader((folder / "judged/examples.csv").read_text().splitlines()))
    by_name = {f"{CLASSES[label]}/{i}": CLASSES[best] for i, (label, best) in
               enumerate(zip(labels, network.eval()(x).argmax(1).tolist()))}
    got = {row["example"]: row["predicted"] for row in rows}
    return "" if got == by_name else f"classes {got} instead of {by_name}"


def arrays_of(folder, inputs, target):
    for name, values in {**inputs, "target": target}.items():
        numpy.save(folder / f"{name}.npy", values.numpy())
    given = [argument for name in inputs for argument in ("--input", f"{name}={folder / name}.npy")]
    return [*given, "--target", folder / "target.npy"]


def problem_of_encoder(program, network, folder):
    torch.manual_seed(3)
    lengths = torch.randint(4, LENGTH + 1, (IMAGES, 1))
    mask = (torch.arange(LENGTH)[None] < lengths).long()
    ids = torch.randint(1, WORDS, (IMAGES, LENGTH)) * mask
    inputs = {"input_ids": ids, "attention_mask": mask}
    target = torch.where(mask == 1, ids % 4, -100) if network.each else ids[:, 0] % 4
    export(network, {name: values[:1] for name, values in inputs.items()}, folder / "m.onnx")
    got = trained(program, folder, *arrays_of(folder, inputs, target))

    def loss_of(logits):
        return F.cross_entropy(logits.reshape(-1, 4), target.reshape(-1))
    return problem_of(got, torch_losses(network, inputs, loss_of))


def problem_of_values(program, network, folder):
    torch.manual_seed(4)
    x, target = torch.randn(IMAGES, 1, 16), torch.randn(IMAGES, 2)
    export(network, {"signal": x[:1]}, folder / "m.onnx")
    got = trained(program, folder, *arrays_of(folder, {"signal": x}, target), "--loss", "mean-squared-error")
    return problem_of(got, torch_losses(network, {"signal": x}, lambda values: F.mse_loss(values, target)))


def networks():
    yield "ResNet on folders of pictures", resnet(), problem_of_pictures
    yield "MobileNetV3 on folders of pictures", mobilenet(), problem_of_pictures
    yield "encoder, one class", Encoder(False), problem_of_encoder
    yield "encoder, a class of each token", Encoder(True), problem_of_encoder
    yield "convolutions of signals, values", nn.Sequential(
        nn.Conv1d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 16), nn.Tanh(), nn.Linear(16, 2),
        nn.Sigmoid()), problem_of_values


def main():
    return judge((name, lambda folder, network=network, problem_with=problem_with: problem_with(sys.argv[1], network, folder))
                 for name, network, problem_with in networks())


if __name__ == "__main__":
    sys.exit(main())
