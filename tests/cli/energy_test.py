"""Energy of a systolic array: a hand count of U-Net S, tables, and the same numbers in every command."""
# SPDX-License-Identifier: Apache-2.0
import json
import math

from support import SOURCE, TINY, ProgramTest, main

TABLES = SOURCE / "experiments/machines/energy"
CLOCKED = ("clock", "leakage of gates", "leakage of memories")  # by simulated cycles and area
WORD = 4  # bytes of a sum, and of a result for the host


def table_of(name):
    """Joule of each action and of each memory's bit."""
    file = json.loads((TABLES / f"{name}.json").read_text())
    prices = {action: (price.get("picojoule", 0) / price.get("bits", 1)) * 1e-12 or price["nanowatt"] * 1e-9
              for action, price in file["actions"].items()}
    memories = {m["bytes"]: m["picojoule"] * 1e-12 / m["bits"] for m in file["memories"]}
    return prices, memories


class Layer:
    """A convolution of U-Net S: `taps` of 9, or of 1 for a transposed one and the head."""

    def __init__(self, name, inputs, outputs, side, taps=9, final=False):
        self.name, self.inputs, self.outputs, self.side, self.taps = name, inputs, outputs, side, taps
        self.final = final  # its results leave as float32
        self.positions = side * side


UNET_S = [
    Layer("down1.conv0", 1, 8, 64), Layer("down1.conv1", 8, 8, 64),
    Layer("down2.conv0", 8, 16, 32), Layer("down2.conv1", 16, 16, 32),
    Layer("down3.conv0", 16, 32, 16), Layer("down3.conv1", 32, 32, 16),
    Layer("bottom.conv0", 32, 64, 8), Layer("bottom.conv1", 64, 64, 8),
    Layer("up3.transpose", 64, 4 * 32, 8, 1), Layer("up3.conv0", 64, 32, 16), Layer("up3.conv1", 32, 32, 16),
    Layer("up2.transpose", 32, 4 * 16, 16, 1), Layer("up2.conv0", 32, 16, 32), Layer("up2.conv1", 16, 16, 32),
    Layer("up1.transpose", 16, 4 * 8, 32, 1), Layer("up1.conv0", 16, 8, 64), Layer("up1.conv1", 8, 8, 64),
    Layer("head", 8, 1, 64, 1, final=True)]
SINGLE = ("down1.conv0", "bottom.conv1", "up1.conv0")  # the layers that the manual counts


class Machine:
    def __init__(self, name, side, element, buffer_rows, accumulator_rows):
        self.name, self.side, self.element = name, side, element
        self.int8 = element == 1
        self.buffer_bytes = buffer_rows * side * element
        self.accumulator_bytes = accumulator_rows * side * WORD


MMU16 = Machine("mmu16", 16, 2, 8192, 2048)
TPU_V1 = Machine("tpu-v1", 256, 1, 65536, 4096)


def hand_count(layer, machine, node):
    """Numbers of the actions by the part's name, in operations and bits, from the dimensions.

    From the trace come only the planner's choices: tile sizes, and which values stay in the buffer.
    """
    tiling = dict(item.split("=") for item in node["tiling"].split(","))
    kept_input = node["counters"]["dram_load_bytes"] == 0
    side, element = machine.side, machine.element
    group = min(int(tiling["group"]), side)
    depth = layer.taps * layer.inputs  # of the chain of sums
    chain = math.ceil(math.ceil(layer.inputs / group) * layer.taps / (side // group))  # weight tiles of it
    across = math.ceil(layer.outputs / side)
    passes = math.ceil(layer.positions / int(tiling["pass"]))
    slots = layer.positions * chain * across
    tile_weights = chain * across * passes * side * side
    # Register files hold one tile of columns, so several are loaded again in each pass.
    registers = layer.outputs * (3 * WORD if machine.int8 and not layer.final else WORD)
    registers *= passes if across > 1 else 1
    result = WORD if layer.final or not machine.int8 else 1
    kept_output = node["counters"]["dram_store_bytes"] <= registers
    blocks = math.ceil(layer.side / int(tiling["y"])) if layer.taps == 9 else 1
    loaded = 0 if kept_input else (layer.side + 2 * (blocks - 1)) * layer.side  # with the blocks' halos
    written = side * (loaded * math.ceil(layer.inputs / group) +
                      (layer.positions * math.ceil(layer.outputs / side) if kept_output else 0))
    weights = depth * layer.outputs * element * passes
    dram = loaded * layer.inputs * element + weights + registers
    dram += 0 if kept_output else layer.positions * layer.outputs * result
    macs = layer.positions * depth * layer.outputs
    pe_slots = slots * side * side
    return {"multiply": macs, "add": macs,
            "activation registers": pe_slots * 8 * element,
            "sum registers": pe_slots * 8 * WORD,
            "weight registers": tile_weights * ((side + 1) / 2 + 2) * 8 * element,
            "weight FIFO": 8 * weights + 8 * element * tile_weights,
            "accumulators": 8 * WORD * 2 * layer.positions * chain * layer.outputs,
            "unified buffer": 8 * element * (layer.positions * depth * across + written),
            "DRAM": 8 * dram}


def hand_joule(counts, machine, table):
    prices, memories = table_of(table)

    def memory(capacity):
        return memories[min(memories, key=lambda size: abs(math.log(capacity / size)))]
    kind = ("int8 multiply", "int32 add") if machine.int8 else ("bf16 multiply", "float32 add")
    price = {"multiply": prices[kind[0]], "add": prices[kind[1]], "weight FIFO": prices["FIFO bit"],
             "accumulators": memory(machine.accumulator_bytes), "unified buffer": memory(machine.buffer_bytes),
             "DRAM": prices["DRAM bit"]}
    return {part: events * price.get(part, prices["register bit"]) for part, events in counts.items()}


class Energy(ProgramTest):
    def nodes(self, machine, *more):
        contract = "int8" if machine.int8 else "bf16"
        trace = self.document("trace", "--model", "unet-s", "--backend", "systolic", "--machine", machine.name,
                              "--contract", contract, *more)["results"][0]
        return {node["node"]: node for node in trace["array"]["nodes"]}

    def parts(self, node):
        return {part["part"]: part for part in node["energy"]["parts"]}

    def test_three_layers_and_the_network_cost_what_a_hand_count_says(self):
        for machine, table in ((MMU16, "45nm"), (TPU_V1, "7nm")):
            nodes = self.nodes(machine, "--energy", table)
            self.assertEqual(list(nodes), [layer.name for layer in UNET_S])
            by_hand = counted = 0
            for layer in UNET_S:
                node = nodes[layer.name]
                parts = self.parts(node)
                counts = hand_count(layer, machine, node)
                self.assertEqual(set(parts), set(counts) | set(CLOCKED))
                joule = hand_joule(counts, machine, table)
                if layer.name in SINGLE:
                    for part, events in counts.items():
                        self.assertEqual(parts[part]["events"], events, (machine.name, layer.name, part))
                        self.assertAlmostEqual(parts[part]["joule"] / joule[part], 1, 9, (layer.name, part))
                by_hand += sum(joule.values()) + sum(parts[part]["joule"] for part in CLOCKED)
                counted += node["energy"]["total"]["value"]
            self.assertLess(abs(counted / by_hand - 1), 0.01, machine.name)

    def test_a_layer_of_tpu_v1_divides_its_power_as_the_paper_measured(self):
        # Jouppi et al., ISCA 2017, table 2: 28 W idle, 40 W busy per die.
        node = self.document("trace", "conv", "--machine", "tpu-v1", "--contract", "int8", "--shape", "256,256,19,19",
                             "--batch", "8", "--scales", "1,1,100")["results"][0]["array"]["nodes"][0]
        parts = {name: part["joule"] for name, part in self.parts(node).items()}
        chip = sum(parts.values()) - parts["DRAM"]
        idle = sum(parts[name] for name in CLOCKED)
        self.assertAlmostEqual(idle / chip, 28 / 40, delta=0.1)
        seconds = node["cycles"] / 700e6
        self.assertAlmostEqual(chip / seconds, 40, delta=0.3 * 40)

    def test_bench_and_trace_price_a_node_alike(self):
        common = [*TINY, "--backend", "systolic", "--machine", "mmu4", "--contract", "bf16", "--energy", "7nm"]
        trace = self.document("trace", *common)["results"][0]["array"]["nodes"]
        bench = self.document("bench", *common, "--layers", "--repeats", "1")["results"][0]["array"]
        self.assertEqual([node["energy"] for node in trace], [node["energy"] for node in bench])
        self.assertEqual(trace[0]["energy"]["table"], "7nm")
        self.assertEqual(trace[0]["energy"]["total"]["kind"], "modelled")
        for node in trace:
            self.assertAlmostEqual(node["energy"]["total"]["value"] * 1e9,
                                   sum(part["joule"] for part in node["energy"]["parts"]) * 1e9)

    def test_a_table_of_ones_own_prices_the_actions(self):
        mine = json.loads((TABLES / "45nm.json").read_text())
        mine["name"] = "mine"
        mine["actions"]["DRAM bit"] = {"picojoule": 7, "source": "a data sheet"}
        (self.folder / "mine.json").write_text(json.dumps(mine))
        product = ["trace", "matmul", "--m", "3", "--k", "4", "--n", "5"]
        node = self.document(*product, "--energy", "mine.json")["results"][0]["array"]["nodes"][0]
        self.assertEqual(node["energy"]["table"], "mine")
        dram = self.parts(node)["DRAM"]
        moved = sum(value for name, value in node["counters"].items() if name.startswith("dram_") and
                    name.endswith("_bytes"))
        self.assertAlmostEqual(dram["joule"] / (8 * moved * 7e-12), 1)
        default = self.document(*product)["results"][0]["array"]["nodes"][0]
        self.assertEqual(default["energy"]["table"], "45nm")
        text = self.succeed(*product, "--energy", "mine.json").stdout
        self.assertIn("energy", text)

    def test_a_wrong_table_is_refused_before_any_work(self):
        for command in (["trace", "matmul"], ["bench", "matmul", "--layers"],
                        ["compare", *TINY, "--synthetic-images", "5"]):
            self.expect_error(2, *command, "--energy", "3nm", says="choose from: 45nm, 7nm, or give a JSON file")
        (self.folder / "bad.json").write_text('{"schema": 1, "name": "bad"}')
        self.expect_error(2, "trace", "matmul", "--energy", "bad.json", says='must have a member "description"')
        self.expect_error(2, "bench", "matmul", "--energy", "7nm", says="--layers")


if __name__ == "__main__":
    main()
