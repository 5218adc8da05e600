"""Networks of PyTorch as graphs, by PyTorch's own export to ONNX."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

from . import _triptych
from .graph import Graph


def _export(module: Any, arguments: tuple[Any, ...], path: str, names: dict[str, list[str]]) -> None:
    """Writes an ONNX file: by torch.export where PyTorch has it, of a module in training by tracing,
    because torch.export's batch normalisation forgets that it trains (seen in 2.15)."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    common: dict[str, Any] = {"input_names": names["inputs"], "output_names": names["outputs"]}
    has_export = "dynamo" in inspect.signature(torch.onnx.export).parameters
    if has_export and not module.training:
        common.update(dynamo=True, optimize=False, external_data=False, verbose=False)
    else:
        if has_export:
            common.update(dynamo=False)
        common.update(training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
        common.update(opset_version=15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(module, arguments, path, **common)
        except MemoryError:
            raise
        except Exception as error:  # any problem of its tracer
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise _triptych.Unsupported(
                f"PyTorch {torch.__version__} cannot export this module in "
                f"{'training' if module.training else 'evaluation'}: {reason}"
            ) from error


@contextlib.contextmanager
def _plain_attention(module: Any) -> Iterator[None]:
    """Computes MultiheadAttention by single operators. Later versions of PyTorch have one operator for
    it if nobody asks for the weights, and their exporter loses its dropout."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    def plain(forward: Any) -> Any:
        signature = inspect.signature(forward)

        def attention(*arguments: Any, **words: Any) -> Any:
            bound = signature.bind(*arguments, **words)
            bound.apply_defaults()
            wanted, bound.arguments["need_weights"] = bound.arguments["need_weights"], True
            y, weights = forward(*bound.args, **bound.kwargs)
            return y, weights if wanted else None

        return attention

    layers = [m for m in module.modules() if isinstance(m, torch.nn.MultiheadAttention)]
    layers = [m for m in layers if "forward" not in vars(m)]
    for layer in layers:
        layer.forward = plain(layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _roles(module: Any) -> dict[str, str]:
    """What becomes of each parameter and buffer that a run keeps."""
    roles = {name: "parameter" if p.requires_grad else "other" for name, p in module.named_parameters()}
    statistics = {name: "statistic" for name, value in module.named_buffers() if _is_statistic(name, value)}
    return {**roles, **statistics}


def _used(module: Any, arguments: tuple[Any, ...]) -> set[str]:
    """Names of the parameters that the outputs depend on."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        results = module(*arguments)
        results = results if isinstance(results, (tuple, list)) else (results,)
        total = sum(y.sum() for y in results if torch.is_tensor(y) and y.requires_grad)
        gradients = torch.autograd.grad(total, list(trained.values()), allow_unused=True)
    return {name for name, gradient in zip(trained, gradients) if gradient is not None}


def _add_unused(graph: Graph, module: Any, arguments: tuple[Any, ...], roles: dict[str, str]) -> None:
    """Keeps as states what the exporter left out, if the outputs do not depend on it."""
    there = {name for name, _, _ in graph.states}
    missing = [name for name in roles if name not in there]
    if any(roles[name] == "parameter" for name in missing):
        lost = sorted(_used(module, arguments) & set(missing))
        if lost:
            raise _triptych.Unsupported(
                f"PyTorch's exporter wrote the parameter {lost[0]} under another name or as part of a "
                "constant, so that it would not be trained; build that layer of triptych.nn or ops"
            )
    state = module.state_dict()
    for name in missing:
        graph.state(name, state[name].detach().cpu().numpy())


def from_torch(
    module: Any,
    example: Any,
    *,
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    seed: int = 0,
) -> Graph:
    """The graph of a torch.nn.Module for inputs of the shapes of `example`, a tensor or a tuple.

    Parameters of a module in training become parameters of the graph with PyTorch's names, and running
    statistics become states. `g.train(...)` updates them, and `module.load_state_dict` accepts
    `plan.states`. Parameters with requires_grad=False, and those that no output depends on, are
    states that keep their values. Dropout draws from `seed`, with new numbers in each run. All of
    them are constants if the module is in evaluation (module.eval()). Inputs have the names of the
    arguments of forward(). Outputs are "y", or "y0", "y1", ... if there are several. Continue with
    `g.result("y")`.
    """
    import torch  # type: ignore[import-not-found,unused-ignore]

    if not isinstance(module, torch.nn.Module):
        raise _triptych.BadInput(f"the module is {type(module).__name__}; give a torch.nn.Module")
    arguments = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    if inputs is None:
        inputs = list(inspect.signature(module.forward).parameters)[: len(arguments)]
    state = module.state_dict()
    was_training = module.training
    with torch.no_grad(), torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory() as folder:
        before = {name: value.clone() for name, value in state.items()}
        if outputs is None:
            outputs = _output_names(module(*arguments))
        path = os.path.join(folder, "module.onnx")
        with _plain_attention(module) if was_training else contextlib.nullcontext():
            _export(module, arguments, path, {"inputs": inputs, "outputs": outputs})
        module.load_state_dict(before)  # a run in training has moved the running statistics
        if not was_training:
            return Graph(_triptych.load(path, {}))
        roles = _roles(module)
        graph = Graph(_triptych.load_training(path, roles, seed))
        _add_unused(graph, module, arguments, roles)
        module.load_state_dict(before)
    statistics = [name for name, role in roles.items() if role == "statistic"]
    trains = [n for n in graph.nodes if n["op"] == "BatchNormalization" and len(n["outputs"]) > 1]
    if len(trains) * 2 < len(statistics):
        raise _triptych.Unsupported(
            f"this PyTorch exported {len(trains)} of {len(statistics) // 2} batch normalisations in "
            "training; export the module in evaluation, or build it of triptych.nn"
        )
    return graph


def _is_statistic(name: str, value: Any) -> bool:
    return name.rsplit(".", 1)[-1] in ("running_mean", "running_var") and value is not None


def _output_names(result: Any) -> list[str]:
    if not isinstance(result, (tuple, list)):
        return ["y"]
    return [f"y{i}" for i in range(len(result))]
