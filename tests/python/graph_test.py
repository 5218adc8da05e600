"""Graphs and plans from Python: tracing, strict placement, training, resuming, threads."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import triptych
from triptych import ops


def line_fit():
    with triptych.Graph() as g:
        x, target = g.input("x", (4, 1)), g.input("target", (4, 1))
        w = g.parameter("w", np.zeros((1, 1), np.float32))
        b = g.parameter("b", np.zeros(1, np.float32))
        error = x @ w + b - target
        loss = ops.reduce_mean(error * error, keepdims=False)
    return g, loss


POINTS = {
    "x": np.float32([[0], [1], [2], [3]]),
    "target": np.float32([[1], [3], [5], [7]]),
    "learning_rate": np.float32(0.02),
}


def small_network(rng):
    """Two convolutions and a mean, with a loss: something that every machine computes."""
    def weights(*shape):
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    with triptych.Graph() as g:
        x, target = g.input("x", (2, 1, 8, 8)), g.input("target", (2, 2, 8, 8))
        h = ops.relu(ops.conv(x, g.parameter("w1", weights(4, 1, 3, 3)), pads=[1, 1, 1, 1]))
        y = ops.conv(h, g.parameter("w2", weights(2, 4, 3, 3)), pads=[1, 1, 1, 1])
        loss = ops.reduce_mean((y - target) * (y - target), keepdims=False)
        g.output("y", y)
    return g, loss


def test_training_fits_a_line_and_the_forward_graph_stays():
    g, loss = line_fit()
    step = g.train(loss, "sgd", momentum=0.9)
    assert g.outputs == [] and step.outputs == ["loss"]
    plan = step.plan()
    for _ in range(200):
        last = plan.run(**POINTS)["loss"]
    assert last < 1e-6
    np.testing.assert_allclose(plan.states["w"], [[2]], atol=1e-3)


def test_an_input_that_was_never_given_is_refused():
    g, loss = line_fit()
    plan = g.train(loss, "sgd").plan()
    with pytest.raises(triptych.BadInput, match='input "learning_rate" was never given'):
        plan.run(x=POINTS["x"], **{k: v for k, v in POINTS.items() if k not in ("x", "learning_rate")})
    with pytest.raises(triptych.BadInput, match="was never given"):
        g.plan().run()
    plan.run(**POINTS)
    plan.run()  # inputs keep their values


@pytest.mark.parametrize("name, decay, momentum", [("sgd", 0, 0), ("adam", 0, None), ("adamw", 0.01, None)])
def test_optimizers_have_the_defaults_that_their_description_names(name, decay, momentum):
    g, loss = line_fit()
    options = {"weight_decay": decay} if momentum is None else {"weight_decay": decay, "momentum": momentum}
    if name != "sgd":
        options.update(beta1=0.9, beta2=0.999, epsilon=1e-8)
    default, named = g.train(loss, name).plan(), g.train(loss, name, **options).plan()
    assert default.run(5, **POINTS)["loss"] == named.run(5, **POINTS)["loss"]
    assert default.weights_sha256 == named.weights_sha256
    assert g.train.__doc__ is not None and "momentum=0" in g.train.__doc__


def test_conditions_on_values_raise_and_comparisons_are_nodes():
    with pytest.raises(triptych.BadInput, match="neither true nor false until a plan"):
        @triptych.function((3,))
        def branches(x):
            return x if x > 0 else -x

    with pytest.raises(triptych.BadInput, match="neither true nor false"):
        @triptych.function((3,), (3,))
        def same(x, y):
            return x if x == y else y

    @triptych.function((3,), (3,))
    def compared(x, y):
        return {"eq": x == y, "ne": x != y, "lt": x < 2, "ge": 2 >= x, "f": 2 / (1 + x) - 3 * y ** 2}

    x, y = np.float32([1, 2, 3]), np.float32([1, 0, 3])
    got = compared.plan().run(x=x, y=y)
    for name, want in {"eq": x == y, "ne": x != y, "lt": x < 2, "ge": 2 >= x, "f": 2 / (1 + x) - 3 * y ** 2}.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-6, err_msg=name)
    assert len({compared.value("x"), compared.value("y")}) == 2  # values can be keys


def test_a_number_has_the_dtype_of_the_value_beside_it():
    @triptych.function(x=((2,), "i32"), h=((2,), "f16"))
    def scaled(x, h):
        return x * 3, h / 2

    got = scaled.plan().run(x=np.int32([1, -2]), h=np.float16([1, 3]))
    assert got["y0"].tolist() == [3, -6] and got["y1"].tolist() == [0.5, 1.5]
    with pytest.raises(triptych.BadInput, match="the number 0.5 is no i32"):
        triptych.function(x=((2,), "i32"))(lambda x: x * 0.5)
    with pytest.raises(triptych.BadInput, match="the number 4294967296 is no i32"):
        triptych.function(x=((2,), "i32"))(lambda x: x + 2**32)


def test_the_example_of_function_runs():
    code = re.search(r"( *@triptych.function.*?)f\.plan", triptych.function.__doc__, re.S).group(1)
    names = {"triptych": triptych}
    exec(textwrap.dedent(code), names)  # Python 3.13 removes the indentation itself
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x, y = np.ones((1, 4), np.float32), np.ones((1, 4), bfloat16)
    assert names["f"].plan("cpu").run(x=x, y=y)["y0"].tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize("backend", ["cpu", "cuda-emulated", "systolic"])
@pytest.mark.parametrize("count", [3, 5000])
def test_an_index_out_of_range_names_node_and_index(backend, count):
    @triptych.function((60, 2), ((count,), "i64"))
    def rows(x, i):
        return ops.gather(x, i)

    plan = rows.plan(backend, "bf16-exact")
    i = np.zeros(count, np.int64)
    i[2] = 61
    with pytest.raises(triptych.BadInput, match=r'node "gather" \(Gather\): index 61 at position 2 is outside \[-60, 59\]'):
        plan.run(x=np.ones((60, 2), np.float32), i=i)
    i[2] = -60
    assert plan.run(i=i)["y0"].sum() == 2 * count


def test_steps_in_one_call_are_those_of_many_calls():
    g, loss = line_fit()
    one, many = g.train(loss, "adam").plan(), g.train(loss, "adam").plan()
    one.run(20, **POINTS)
    for _ in range(20):
        many.run(**POINTS)
    for name, value in one.states.items():
        assert value.tobytes() == many.states[name].tobytes()


def test_training_has_the_same_bits_on_all_machines(rng):
    g, loss = small_network(rng)
    step = g.train(loss, "adamw", weight_decay=0.01)
    x = rng.standard_normal((5, 2, 1, 8, 8)).astype(np.float32)
    target = rng.standard_normal((2, 2, 8, 8)).astype(np.float32)
    results = {}
    for backend in ("cpu", "cuda-emulated", "systolic"):
        plan = step.plan(backend, "bf16-exact")
        losses = [plan.run(x=b, target=target, learning_rate=np.float32(0.01))["loss"] for b in x]
        states = plan.states
        results[backend] = b"".join(map(np.ndarray.tobytes, losses + [states[k] for k in states]))
    assert len(set(results.values())) == 1
    assert losses[-1] < losses[0]


def test_resumed_training_has_the_bits_of_one_that_went_on(tmp_path):
    g, loss = line_fit()
    step = g.train(loss, "adam")
    whole = step.plan()
    whole.run(10, **POINTS)
    first = step.plan()
    first.run(4, **POINTS)
    np.savez(tmp_path / "saved.npz", **first.states)
    second = step.plan()
    second.load_states(np.load(tmp_path / "saved.npz"))
    second.run(6, **POINTS)
    for name, value in whole.states.items():
        assert value.tobytes() == second.states[name].tobytes()


def test_function_is_traced_with_arrays_as_constants(rng):
    shift = rng.standard_normal((1, 4)).astype(np.float32)

    @triptych.function(x=(1, 4), on=((1, 4), "bool"))
    def chosen(x, on):
        """Doc."""
        return {"sum": x + shift, "chosen": ops.where(on, x, 2.0 * x)}

    assert chosen.__doc__ == "Doc." and chosen.outputs == ["sum", "chosen"]
    x = rng.standard_normal((1, 4)).astype(np.float32)
    on = np.array([[True, False, True, False]])
    y = chosen.plan().run(x=x, on=on)
    np.testing.assert_array_equal(y["sum"], x + shift)
    np.testing.assert_array_equal(y["chosen"], np.where(on, x, 2 * x))


def test_specs_without_names_go_to_the_arguments_in_order():
    @triptych.function((2, 3), on=((2, 3), "bool"))
    def kept(x, on):
        return ops.where(on, x, 0.0), -x

    assert kept.inputs == [("x", (2, 3), "f32"), ("on", (2, 3), "bool")]
    assert kept.outputs == ["y0", "y1"]


def test_plan_explains_and_traces(tmp_path, rng):
    g, _ = small_network(rng)
    plan = g.plan("systolic", "bf16-exact", keep_values=True)
    rows = plan.explain()
    assert {r["device"] for r in rows if r["op"] == "Conv"} == {"systolic:mmu16"}
    assert "cpu" in plan.devices[1]
    x, target = np.ones((2, 1, 8, 8), np.float32), np.zeros((2, 2, 8, 8), np.float32)
    plan.trace(tmp_path / "trace.json", x=x, target=target)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {r["node"] for r in rows if r["kernel"]} <= {e["name"] for e in events}
    with pytest.raises(triptych.BadInput, match="trace.json exists"):
        plan.trace(tmp_path / "trace.json", x=x, target=target)
    assert plan.counters["mmu_macs"] > 0
    assert plan.read("conv").shape == (2, 4, 8, 8)


def test_a_plan_for_inference_merges_operators_and_has_no_states(rng):
    g, _ = small_network(rng)
    inputs = {"x": rng.random((2, 1, 8, 8), np.float32), "target": np.zeros((2, 2, 8, 8), "f4")}
    plain, merged = g.plan(), g.plan(inference=True)
    assert len(merged.explain()) < len(plain.explain())
    assert np.allclose(merged.run(**inputs)["y"], plain.run(**inputs)["y"], atol=1e-6)
    assert plain.states and not merged.states
    with pytest.raises(triptych.BadInput):
        merged.load_states(plain.states)


def test_plan_outlives_graph_arrays_and_values(rng):
    g, _ = small_network(rng)
    plan = g.plan()
    want = plan.run(x=np.ones((2, 1, 8, 8), np.float32), target=np.zeros((2, 2, 8, 8), "f4"))["y"]
    del g
    assert plan.run()["y"].tobytes() == want.tobytes()  # inputs keep their values
    value = small_network(rng)[1]
    assert value.graph.node_count() > 5  # the graph lives in its value


def test_threads_run_several_plans_and_one(rng):
    g, _ = small_network(rng)
    x = rng.standard_normal((2, 1, 8, 8)).astype(np.float32)
    plans = [g.plan(b) for b in ("cpu", "cuda-emulated", "cpu")]
    want = [p.run(x=x, target=np.zeros((2, 2, 8, 8), "f4"))["y"].tobytes() for p in plans]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = pool.map(lambda i: plans[i % 3].run(x=x)["y"].tobytes(), range(60))
        assert all(y == want[i % 3] for i, y in enumerate(got))


def test_other_threads_go_on_while_a_plan_runs():
    big = np.ones((700, 700), np.float32)

    @triptych.function(x=big.shape)
    def product(x):
        return x @ big

    plan = product.plan("cpu", kernel="naive", threads=1)
    worker = threading.Thread(target=plan.run, kwargs={"x": big * 1e-3})
    worker.start()
    ticks = 0
    while worker.is_alive():
        ticks += 1
        time.sleep(1e-4)
    worker.join()
    assert ticks > 5


@pytest.mark.parametrize("call, words", [
    (lambda g, v: ops.add(v, np.zeros((3, 2), np.float32)), "do not broadcast"),
    (lambda g, v: ops.add(v, line_fit()[0].value("x")), "different graphs"),
    (lambda g, v: g.input("x", (1,)), "x"),
    (lambda g, v: g.input("z", (-1, 2)), "-1"),
    (lambda g, v: g.input("z", (1 << 62, 4)), ""),
    (lambda g, v: g.input("z", (1,), "f64"), "dtype"),
    (lambda g, v: g.value("nothing"), "nothing"),
    (lambda g, v: g.train(v, "sgd"), "loss"),
    (lambda g, v: g.train(3, "sgd"), "no value of this graph"),
    (lambda g, v: g.train(g.value("reducemean"), "lion"), "must be one of sgd"),
    (lambda g, v: g.train(g.value("reducemean"), "sgd", lr=1), "no option lr"),
    (lambda g, v: g.train(g.value("reducemean"), "sgd", momentum="a"), "the option momentum is 'a'"),
    (lambda g, v: np.asarray(v), "has no numbers until"),
    (lambda g, v: triptych.function(x=(2,))(lambda x: None), "the function returned NoneType"),
    (lambda g, v: triptych.function(x=(2,))(lambda x: [x, np.ones(2)]), "y1 is ndarray"),
    (lambda g, v: triptych.function((2,), (3,))(lambda x: x), "2 specs for the arguments x"),
    (lambda g, v: g.plan().run(y=np.zeros(1, np.float32)), "no input \"y\"; its inputs"),
    (lambda g, v: g.plan().run(x=np.zeros((4, 2), np.float32)), r"f32\[4, 1\], got f32\[4, 2\]"),
    (lambda g, v: g.plan().run(x=np.zeros((4, 1))), "float64"),
    (lambda g, v: g.plan().run(0), "at least 1 step"),
    (lambda g, v: g.plan().load_states({"w": np.zeros(7, np.float32)}), "\"w\" is f32"),
    (lambda g, v: g.plan().load_states({"v": np.zeros(7, np.float32)}), "no state \"v\""),
    (lambda g, v: g.plan().read("loss"), "no output \"loss\""),
    (lambda g, v: triptych.load("/nonexistent.onnx"), "nonexistent.onnx"),
    (lambda g, v: triptych.load(__file__), "graph_test.py"),
])
def test_misuse_is_a_sentence(call, words):
    g, _ = line_fit()
    with pytest.raises(triptych.BadInput, match=words):
        call(g, g.value("x"))


def run_script(text, **options):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120,
                          **options)


def test_numpy_that_the_build_does_not_know_is_refused():
    done = run_script("import numpy; numpy.__version__ = '2.1.0'; import triptych; print('here')")
    if tuple(map(int, os.environ["TRIPTYCH_PYBIND11"].split(".")[:2])) >= (2, 12):
        assert done.stdout == "here\n", done
    else:
        assert "ImportError: this build of triptych knows NumPy 1 alone, and found NumPy 2.1.0" in done.stderr


def test_fork_after_use_is_a_sentence():
    done = run_script("""
import multiprocessing, numpy as np, triptych
x = np.ones(3, np.float32)
triptych.ops.relu(x)
graph = triptych.function(x=(3,))(lambda x: -x)
plan = graph.plan()
def child(pipe):
    for call in (lambda: triptych.ops.relu(x), lambda: plan.run(x=x), lambda: graph.plan()):
        try: call(); pipe.send("ran")
        except triptych.DeviceUnavailable as error: pipe.send(str(error))
mine, theirs = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
process.start(); process.join(20)
print(process.exitcode, mine.recv(), mine.recv(), mine.recv())
""")
    assert done.stdout.startswith("0 "), done
    assert done.stdout.count("was forked") == 3


def test_interpreter_that_ends_waits_for_a_plan():
    done = run_script("""
import threading, time, numpy as np, triptych
@triptych.function(x=(300, 300))
def f(x):
    for _ in range(8): x = x @ x
    return x
plan = f.plan("cpu", kernel="naive")
def forever():
    while True: plan.run(x=np.zeros((300, 300), np.float32))
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
print("end", flush=True)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", ""), done


def test_ctrl_c_stops_between_steps():
    g, loss = line_fit()
    plan = g.train(loss, "sgd").plan()
    plan.run(**POINTS)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        plan.run(1 << 30)
    assert plan.states["optimizer.step"] > 1
    assert plan.run(**POINTS)["loss"] >= 0  # goes on


def test_the_how_to_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = pathlib.Path(__file__).parents[2] / "docs/guides/use-from-python.md"
    blocks = re.findall("```python\n(.*?)```", page.read_text(), re.S)
    pictures = np.random.default_rng(0).random((4, 64, 64), np.float32)
    names = {"images": pictures, "masks": pictures > 0.5, "more_images": pictures[:1],
             "more_masks": pictures[:1] > 0.5, "new_images": pictures[:1], "triptych": triptych}
    ran = [block for block in blocks if not skipped(block)]
    assert len(blocks) - len(ran) <= 2
    for block in ran:
        for long, short in (("epochs=20", "epochs=2"), ("epochs=4", "epochs=1"),
                            ("\"cuda-emulated\", ", "")):  # which is compared in compare_test.py
            block = block.replace(long, short)
        exec(block, names)
        if "ops.conv" in block:
            assert names["y"].device == "systolic:mmu16" and names["y"].kernel == "mmu"
        if "np.savez" in block:
            np.testing.assert_allclose(names["plan"].states["w"], [[2]], atol=0.01)


def skipped(block):
    """PyTorch has a test of its own; cells want RTL."""
    return "from_torch" in block or ("rtl" in block and "mmu4" not in triptych.rtl_machines())


def test_an_object_that_was_not_initialised_is_refused():
    """In a process of its own: memory with arbitrary content was read."""
    code = """if True:
        import triptych._triptych as compiled
        for name, cls in vars(compiled).items():
            if not isinstance(cls, type) or issubclass(cls, Exception):
                continue
            bare = cls.__new__(cls)
            for member in (name for name in dir(cls) if not name.startswith("__")):
                try:
                    found = getattr(bare, member)
                    if callable(found):
                        found()
                except (TypeError, RuntimeError):
                    continue
                raise AssertionError(f"{cls.__name__}.{member} was read")
            print(cls.__name__)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"Value", "Graph", "Plan", "Machine", "Trainer"} <= set(done.stdout.split())
