"""Measured times of matrix products on a TPU v4, compared with simulated cycles.

  tpu_latencies.py MMU_UTILISATION CSV...

Each CSV file has a row per product with the columns dim_m, dim_n, dim_k, fusion_avg (microseconds) and scale_sim_cycles, as
the repository scalesim-project/SCALE-Sim-validation has. The table shows the mean absolute error in percent of the measured
time: without any fit (cycles divided by the clock), and after the least-squares line from cycles to time of each file.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ARRAYS = 4
MACHINE = pathlib.Path(__file__).with_name("tpu-v4-mxu.json")


def varint(value):
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def number_field(key, value):
    return varint(key << 3) + varint(value)


def bytes_field(key, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(key << 3 | 2) + varint(len(data)) + data


def value_info(name, shape):
    """ONNX: a float32 tensor of that shape."""
    dims = b"".join(bytes_field(1, number_field(1, size)) for size in shape)
    tensor = number_field(1, 1) + bytes_field(2, dims)
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor))


def onnx_model(products):
    """An ONNX file with a MatMul of two inputs for each (m, n, k)."""
    graph = b""
    for index, _ in enumerate(products):
        graph += bytes_field(1, bytes_field(1, f"a{index}") + bytes_field(1, f"b{index}")
                             + bytes_field(2, f"c{index}") + bytes_field(4, "MatMul"))
    graph += bytes_field(2, "products")
    for index, (m, n, k) in enumerate(products):
        graph += bytes_field(11, value_info(f"a{index}", (m, k)))
        graph += bytes_field(11, value_info(f"b{index}", (k, n)))
        graph += bytes_field(12, value_info(f"c{index}", (m, n)))
    opset = bytes_field(1, "") + number_field(2, 13)
    return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, opset)


def cycles_of(program, products, machine=MACHINE):
    """Cycles of each product on one array."""
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "products.onnx"
        model.write_bytes(onnx_model(products))
        text = subprocess.run([program, model, "infer", machine, "--nodes", "--apart"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    found = {int(index): int(cycles) for cycles, index in
             re.findall(r"^\s*(\d+) .*\bc(\d+)$", text, re.MULTILINE)}
    if len(found) != len(products):
        sys.exit(f"{program} timed {len(found)} of {len(products)} products")
    return [found[index] for index in range(len(products))]


def core_cycles(program, products):
    """Cycles of each product on a core, whose arrays share the bandwidth and the result.

    Each array takes a quarter of the rows or a quarter of the columns: whichever takes less time.
    """
    rows = cycles_of(program, [(-(-m // ARRAYS), n, k) for m, n, k in products])
    columns = cycles_of(program, [(m, -(-n // ARRAYS), k) for m, n, k in products])
    return [min(pair) for pair in zip(rows, columns)]


def line(xs, ys):
    """Slope and intercept by least squares."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread
    return slope, mean_y - slope * mean_x


def mean_error(predicted, measured):
    return 100 * sum(abs(p - m) / m for p, m in zip(predicted, measured)) / len(measured)


def fitted_error(cycles, measured):
    slope, intercept = line(cycles, measured)
    return mean_error([slope * count + intercept for count in cycles], measured)


def errors(program, path):
    """Products of a file, error without a fit, error with one, SCALE-Sim's with one."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    products = [tuple(int(row[key]) for key in ("dim_m", "dim_n", "dim_k")) for row in rows]
    measured = [float(row["fusion_avg"]) for row in rows]
    clock = json.loads(MACHINE.read_text(encoding="utf-8"))["clock_mhz"]
    cycles = core_cycles(program, products)
    direct = mean_error([count / clock for count in cycles], measured)
    published = [float(row["scale_sim_cycles"]) for row in rows]
    return len(rows), direct, fitted_error(cycles, measured), fitted_error(published, measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=pathlib.Path, metavar="MMU_UTILISATION")
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="CSV")
    arguments = parser.parse_args()
    print("| file | products | no fit | line | SCALE-Sim, line |\n|---|---|---|---|---|")
    for path in arguments.files:
        count, direct, fitted, published = errors(arguments.program.resolve(), path)
        print(f"| {path.name} | {count} | {direct:.1f} % | {fitted:.1f} % | {published:.1f} % |")


if __name__ == "__main__":
    main()
