"""A U-Net of PyTorch with its DataLoader, moved over: its losses are followed."""
# SPDX-License-Identifier: Apache-2.0
import inspect
import pathlib
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if "dynamo" in inspect.signature(torch.onnx.export).parameters:  # later exporters need further packages
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnx.checker")
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


class Partly(torch.nn.Module):
    """A frozen layer, dropout, a parameter that no output depends on, and a learnable number."""

    def __init__(self, ratio=0.0):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 1)
        self.first.requires_grad_(False)
        self.drop, self.aux = torch.nn.Dropout(ratio), torch.nn.Linear(3, 2)
        self.scale = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.last(self.drop(torch.nn.functional.elu(self.first(x)))) * self.scale


def steps_of(net, x, count):
    g = triptych.from_torch(net, x)
    y = g.result("y")
    loss = triptych.ops.reduce_mean(y * y, keepdims=False)
    plan = g.train(loss, "sgd").plan("cpu")
    inputs = {g.inputs[0][0]: x, "learning_rate": 0.05}
    losses = [plan.run(**inputs)["loss"].item() for _ in range(count)]
    return losses, plan.states


def trained_by_pytorch(net, x, count):
    optimizer, losses = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05), []
    for _ in range(count):
        loss = (net(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_frozen_and_unused_parameters_stay_and_the_rest_is_trained_as_by_pytorch():
    torch.manual_seed(1)
    net, x = Partly(), 100 * torch.randn(16, 6)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    losses, states = steps_of(net, x, 5)
    assert set(before) <= set(states)  # load_state_dict takes them
    np.testing.assert_allclose(losses, trained_by_pytorch(net, x, 5), rtol=1e-4)
    for name, value in net.state_dict().items():
        np.testing.assert_allclose(states[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
        kept = name.startswith(("first", "aux"))
        assert kept == np.array_equal(states[name], before[name]), name


def test_dropout_draws_in_training_and_other_numbers_in_each_run():
    torch.manual_seed(1)
    net, x = Partly(0.5), torch.randn(16, 6)
    random_state = torch.get_rng_state()
    g = triptych.from_torch(net, x, seed=7)
    assert torch.equal(random_state, torch.get_rng_state())
    plan = g.plan("cpu")
    first, second = plan.run(x=x)["y"], plan.run(x=x)["y"]
    assert not np.array_equal(first, second) and plan.states["dropout.step"] == 2
    again = triptych.from_torch(net, x, seed=7).plan("cuda-emulated")
    np.testing.assert_allclose(again.run(x=x)["y"], first, rtol=1e-5)
    mean = np.mean([plan.run(x=x)["y"] for _ in range(2000)], axis=0)
    net.eval()
    np.testing.assert_allclose(mean, net(x).detach(), atol=0.1)


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "activation": "gelu"}, {"norm_first": True}])
def test_transformer_layers_are_trained_as_by_pytorch(options):
    torch.manual_seed(2)
    net, x = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options), torch.randn(5, 3, 8)
    losses, states = steps_of(net, x, 4)
    np.testing.assert_allclose(losses, trained_by_pytorch(net, x, 4), rtol=1e-5)
    for name, value in net.state_dict().items():
        np.testing.assert_allclose(states[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_transformer_layers_drop_in_attention_too():
    net, x = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25), torch.randn(5, 3, 8)
    graph = triptych.from_torch(net, x)
    assert sum(node["op"] == "Dropout" for node in graph.nodes) == 4
    assert "forward" not in vars(net.self_attn)


def test_what_pytorch_cannot_export_is_a_sentence():
    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[0]

    with pytest.raises(triptych.Unsupported, match="PyTorch .* cannot export this module in training"):
        triptych.from_torch(Odd(), torch.zeros(3, 3))
