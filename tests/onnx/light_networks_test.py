"""Nine published networks with constant weights (ONNX's "light" models) against their expected outputs.

Usage: light_networks_test.py PROGRAM SOURCE_DIR. They are looked for as onnx_light in TRIPTYCH_TEST_DATA, or in
../shared/data beside the sources.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy

    import suite
except ImportError:
    print("skipped: python3-numpy is missing (apt-get install python3-numpy)")
    sys.exit(77)

# The tolerance that ONNX's own runner has for this one.
TOLERANCE = {"densenet121": 2e-3}


def input_of(model):
    """Name and shape of the graph's one input that no initialiser gives."""
    graph = suite.messages(model.read_bytes(), 7)[0]
    given = {suite.messages(one, 8)[0] for one in suite.messages(graph, 5)}
    for value in suite.messages(graph, 11):
        name = suite.messages(value, 1)[0]
        if name not in given:
            shape = suite.messages(suite.messages(suite.messages(value, 2)[0], 1)[0], 2)[0]
            return name.decode(), [suite.messages(size, 1)[0] for size in suite.messages(shape, 1)]
    raise ValueError(model)


def problem_of(program, model):
    name = model.stem.removeprefix("light_")
    expected = suite.tensor(model.with_name(model.stem + "_output_0.pb").read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        key, shape = input_of(model)
        ramp = numpy.arange(numpy.prod(shape)).reshape(shape) / numpy.prod(shape)
        numpy.save(f"{folder}/x.npy", ramp.astype("<f4"))
        command = [program, "run", str(model), "--input", f"{key}={folder}/x.npy", "--out", f"{folder}/out"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if result.returncode != 0:
            return result.stderr.strip()
        got = numpy.load(f"{folder}/out/output_0.npy")
    close = got.shape == expected.shape and numpy.allclose(got, expected, TOLERANCE.get(name, 1e-3), 1e-7)
    return "" if close else "wrong numbers"


def main():
    root = pathlib.Path(os.environ.get("TRIPTYCH_TEST_DATA", pathlib.Path(sys.argv[2]) / "../shared/data"))
    models = sorted((root / "onnx_light").glob("light_*.onnx"))
    if not models:
        print(f"skipped: no onnx_light in {root}")
        return 77
    problems = {model.stem: problem_of(sys.argv[1], model) for model in models}
    for name, problem in problems.items():
        print(f"{name}: {problem or 'passed'}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
