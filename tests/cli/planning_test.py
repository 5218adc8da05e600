"""A graph of twice the nodes takes about twice the processor time to load, plan and run once."""
# SPDX-License-Identifier: Apache-2.0
import resource

from onnx_files import *
from support import *

MOST = 2.6  # of twice the nodes; work that grows with the square would take 4 times as long


class Planning(ProgramTest):
    def seconds(self, command_of, count):
        """Processor time of the command for so many nodes: the least of three runs."""
        times = []
        for _ in range(3):
            arguments = command_of(count)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.succeed(*arguments)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    def expect_linear(self, command_of, count):
        once, twice = (self.seconds(command_of, n) for n in (count, 2 * count))
        self.assertLess(twice, MOST * once, f"{count}: {once:.2f} s, {2 * count}: {twice:.2f} s")

    def chain(self, nodes, op, *weights):
        names = ["x", *(f"v{i}" for i in range(1, nodes)), "y"]
        inputs = [weight[0] for weight in weights]
        (self.folder / "model.onnx").write_bytes(
            model([node(op, [names[i], *inputs], [names[i + 1]]) for i in range(nodes)],
                  [value_info("x", [1, 3])], [value_info("y", [1, 3])],
                  [tensor(*weight) for weight in weights]))
        save_npy(self.folder / "x.npy", (1, 3), [1, 2, 3])
        return ["run", "model.onnx", "--input", "x.npy", "--output-dir", "out", "--threads", "1"]

    def test_a_chain_of_elementwise_operators(self):
        self.expect_linear(lambda n: self.chain(n, "Neg"), 20000)

    def test_a_chain_of_products(self):
        self.expect_linear(lambda n: self.chain(n, "MatMul", ("w", (3, 3), [0.5] * 9)), 10000)

    def test_a_recurrent_layer(self):
        def command(steps):
            weights = [tensor(name, (1, 32, 8), [0.01] * 256) for name in "WR"]
            (self.folder / "model.onnx").write_bytes(
                model([node("LSTM", ["x", "W", "R"], ["y"], integer("hidden_size", 8))],
                      [value_info("x", [steps, 1, 8])], [value_info("y", [steps, 1, 1, 8])], weights, 14))
            save_npy(self.folder / "x.npy", (steps, 1, 8), [0.1] * (steps * 8))
            return ["run", "model.onnx", "--input", "x.npy", "--output-dir", "out", "--threads", "1"]
        self.expect_linear(command, 600)

    def test_micro_batches(self):
        def command(count):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            return ["train", *TINY, "--synthetic-images", "300", "--batch", str(count), "--accumulate", str(count),
                    "--steps", "1", "--threads", "1", "--out", "run"]
        self.expect_linear(command, 128)


if __name__ == "__main__":
    main()
