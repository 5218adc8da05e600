#!/usr/bin/env python3
"""Writes unet-s.onnx, unet-m.onnx and unet-l.onnx, with any batch.   export_onnx.py FOLDER"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import torch

from unet_torch import MODELS, UNet


def main(folder):
    for name, (base, depth, size) in MODELS.items():
        torch.manual_seed(0)
        torch.onnx.export(UNet(base, depth).eval(), torch.randn(1, 1, size, size),
                          str(pathlib.Path(folder) / f"{name}.onnx"), opset_version=15,
                          input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


if __name__ == "__main__":
    main(sys.argv[1])
