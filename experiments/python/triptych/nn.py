"""Layers: functions that add parameters, states and nodes to the graph of their input.

Parameters are drawn from the seed and their own name, as the command line draws them: the same names
and the same seed give the same weights. Axes are [batch, channels, height, width].
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from . import _triptych, ops
from ._triptych import Value


class Layers:
    """Layers of one network. `seed` draws its parameters, `training` normalises by each batch."""

    def __init__(self, seed: int = 0, training: bool = True) -> None:
        self._mode = _triptych.Mode(seed, training)

    def conv3x3(self, name: str, x: Value, channels: int) -> Value:
        """3x3 convolution without bias, stride 1, same padding."""
        return self._mode.conv3x3(name, x, channels)

    def up_conv2x2(self, name: str, x: Value, channels: int) -> Value:
        """2x2 transposed convolution with stride 2 and bias: height and width are doubled."""
        return self._mode.up_conv2x2(name, x, channels)

    def batch_norm(self, name: str, x: Value) -> Value:
        """Batch normalisation with running statistics."""
        return self._mode.batch_norm(name, x)

    def linear(self, name: str, x: Value, features: int) -> Value:
        """y = x w + b. x: [batch, features]."""
        return self._mode.linear(name, x, features)

    def logits_head(self, name: str, x: Value, classes: int) -> Value:
        """The last layer: 1x1 convolution with bias to one logit for each class."""
        return self._mode.logits_head(name, x, classes)

    def conv_bn_relu(self, name: str, index: int, x: Value, channels: int) -> Value:
        """Convolution, normalisation and ReLU, named NAME.conv0, NAME.bn0 for index 0."""
        y = self.conv3x3(f"{name}.conv{index}", x, channels)
        normalised: Value = ops.relu(self.batch_norm(f"{name}.bn{index}", y))
        return normalised


def segmentation_loss(logits: Value, target: Value, kind: str = "cross-entropy") -> Value:
    """The mean over pixels: cross-entropy, dice or dice-cross-entropy.

    For one class, target is f32 like the logits, 0 or 1. For more, i64 [batch, height, width].
    """
    return _triptych.segmentation_loss(logits, target, kind)
