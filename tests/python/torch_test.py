"""A U-Net of PyTorch with its DataLoader, moved over: its losses are followed."""
# SPDX-License-Identifier: Apache-2.0
import inspect
import pathlib
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript" if torch.__version__ >= "2.9" else "torch")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))

import triptych  # noqa: E402
from torch_parity import UNet  # noqa: E402

STEPS, BATCH, SIZE = 50, 4, 32


def loader():
    """Blurred noise, and where it is bright."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(STEPS * BATCH, 1, SIZE, SIZE, generator=generator)
    y = (torch.nn.functional.avg_pool2d(x, 5, 1, 2) > 0.05).float()
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)


def theirs(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for x, y in loader():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def moved_over(net):
    g = triptych.from_torch(net, torch.zeros(BATCH, 1, SIZE, SIZE))
    target = g.input("target", (BATCH, 1, SIZE, SIZE))
    loss = triptych.nn.segmentation_loss(g.result("y"), target)
    plan = g.train(loss, "sgd", momentum=0.9).plan("cpu")
    losses = []
    for x, y in loader():
        losses.append(plan.run(x=x, target=y, learning_rate=0.01)["loss"].item())
    own = net.state_dict()
    net.load_state_dict({**own, **{k: torch.from_numpy(v) for k, v in plan.states.items() if k in own}})
    return losses


def test_losses_of_pytorch_are_followed():
    torch.manual_seed(0)
    first, second = UNet(), UNet()
    second.load_state_dict(first.state_dict())
    ours = moved_over(second)
    expected = theirs(first)
    assert len(inspect.getsource(moved_over).splitlines()) <= 15
    assert len(ours) == STEPS and expected[-1] < expected[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-3)
    first.eval(), second.eval()
    x = next(iter(loader()))[0]
    with torch.no_grad():
        # The running variance: ONNX's is that of the batch, PyTorch's an estimate, 64 / 63 larger here.
        np.testing.assert_allclose(first(x), second(x), atol=0.2)


def test_module_in_evaluation_is_a_graph_of_constants():
    torch.manual_seed(0)
    net = UNet().eval()
    x = torch.randn(2, 1, SIZE, SIZE)
    graph = triptych.from_torch(net, x)
    with torch.no_grad():
        expected = net(x)
    np.testing.assert_allclose(graph.plan("cpu").run(x=x)["y"], expected, atol=1e-4)
    assert graph.states == []


def test_what_is_no_module_is_a_sentence():
    with pytest.raises(triptych.BadInput, match="the module is int; give a torch.nn.Module"):
        triptych.from_torch(3, torch.zeros(1))


def test_module_is_left_as_it_was():
    net = UNet()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    triptych.from_torch(net, torch.zeros(1, 1, SIZE, SIZE))
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
