#!/usr/bin/env python3
"""U-Net's inference by OpenVINO on the CPU.   unet_openvino.py FILE.onnx SIZE BATCH THREADS REPEATS bf16|f32|int8

The last word is OpenVINO's precision hint; bf16 is its own choice on a processor with AMX. int8: NNCF quantises the
model by its defaults, with random images. Prints one JSON object:
version with the precision in force, seconds of each run after three that warm up, peak memory.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import sys
import time

import numpy
import openvino


def peak_memory_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))


def main(file, size, batch, threads, repeats, precision):
    core = openvino.Core()
    model = core.read_model(file)
    shape = [int(batch), 1, int(size), int(size)]
    model.reshape(shape)
    random = numpy.random.default_rng(0)
    hint = {"INFERENCE_PRECISION_HINT": precision}
    if precision == "int8":
        import nncf
        images = [random.standard_normal(shape, dtype=numpy.float32) for _ in range(4)]
        with contextlib.redirect_stdout(sys.stderr):  # it draws its progress
            model, hint = nncf.quantize(model, nncf.Dataset(images), subset_size=len(images)), {}
    compiled = core.compile_model(model, "CPU", {
        **hint, "INFERENCE_NUM_THREADS": int(threads), "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    x = random.standard_normal(shape, dtype=numpy.float32)
    seconds = []
    for run in range(3 + int(repeats)):
        start = time.perf_counter()
        request.infer({0: x}, share_inputs=True)
        if run >= 3:
            seconds.append(time.perf_counter() - start)
    in_force = "int8" if precision == "int8" else compiled.get_property("INFERENCE_PRECISION_HINT")
    print(json.dumps({"version": f"{openvino.__version__}, {in_force}", "peak_memory_mib": peak_memory_mib(),
                      "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
