"""A graph of two times the nodes takes about two times the instructions to load, plan and run.

Valgrind counts them, so the load of the machine does not matter.
"""
# SPDX-License-Identifier: Apache-2.0
import re

from onnx_files import *
from support import *

VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
MOST = 2.3  # work that grows with the square takes 4 times as much


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed (apt-get install valgrind)")
class Planning(ProgramTest):
    def instructions(self, arguments):
        result = subprocess.run([*VALGRIND, PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=1200)
        self.assertEqual(result.returncode, 0, result.stderr)
        return int(re.search(r"Collected : (\d+)", result.stderr)[1])

    def expect_linear(self, command_of, count):
        once, twice = (self.instructions(command_of(n)) for n in (count, 2 * count))
        self.assertLess(twice, MOST * once, f"{count}: {once}, {2 * count}: {twice} instructions")

    def chain(self, nodes, op, *weights):
        names = ["x", *(f"v{i}" for i in range(1, nodes)), "y"]
        inputs = [weight[0] for weight in weights]
        (self.folder / "model.onnx").write_bytes(
            model([node(op, [names[i], *inputs], [names[i + 1]]) for i in range(nodes)],
                  [value_info("x", [1, 3])], [value_info("y", [1, 3])],
                  [tensor(*weight) for weight in weights]))
        save_npy(self.folder / "x.npy", (1, 3), [1, 2, 3])
        return ["run", "model.onnx", "--input", "x.npy", "--out", "out", "--threads", "1"]

    def test_a_chain_of_elementwise_operators(self):
        self.expect_linear(lambda n: self.chain(n, "Neg"), 2500)

    def test_a_chain_of_products(self):
        self.expect_linear(lambda n: self.chain(n, "MatMul", ("w", (3, 3), [0.5] * 9)), 2500)

    def test_a_recurrent_layer(self):
        def command(steps):
            weights = [tensor(name, (1, 32, 8), [0.01] * 256) for name in "WR"]
            (self.folder / "model.onnx").write_bytes(
                model([node("LSTM", ["x", "W", "R"], ["y"], integer("hidden_size", 8))],
                      [value_info("x", [steps, 1, 8])], [value_info("y", [steps, 1, 1, 8])], weights, 14))
            save_npy(self.folder / "x.npy", (steps, 1, 8), [0.1] * (steps * 8))
            return ["run", "model.onnx", "--input", "x.npy", "--out", "out", "--threads", "1"]
        self.expect_linear(command, 150)

    def test_micro_batches(self):
        def command(count):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            return ["train", *TINY, "--synthetic-images", "70", "--batch", str(count), "--accumulate", str(count),
                    "--steps", "1", "--threads", "1", "--out", "run"]
        self.expect_linear(command, 32)


if __name__ == "__main__":
    main()
