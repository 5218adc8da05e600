"""Single operators from Python: values, machines, kinds of time, the cache of plans, errors."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import inspect
import re
import warnings

import numpy as np
import pytest

import triptych
from triptych import _triptych, ops


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_every_operator_of_the_table_is_a_function_with_its_attributes():
    table = _triptych.operators()
    assert len(table) > 80
    for name, formula, attributes, _, _ in table:
        function = getattr(ops, name)
        assert getattr(ops, ops.python_name(name)) is function
        assert function.__doc__.startswith(formula)
        assert re.search(r"Source: core/ops/\w+\.h\.", function.__doc__)
        assert set(inspect.signature(function).parameters) >= {_triptych.python_word(a) for a in attributes}


INT8_MACHINES = [("cpu", {}), ("systolic", {"machine": "mmu16-int8"}), ("systolic", {"machine": "tpu-v1"})]


@pytest.mark.parametrize("backend, options", INT8_MACHINES)
def test_products_of_integers_are_exact_on_int8_machines(backend, options):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((5, 37), (37, 6)))
    sums = a.astype(np.int32) @ b.astype(np.int32)
    result = ops.quantized_matmul(a, b, backend=backend, options=options)
    assert result.dtype == "i32" and result.time_kind == ("measured" if backend == "cpu" else "simulated")
    np.testing.assert_array_equal(result.value, sums)
    scaled = ops.quantized_matmul(a, b, scales=(0.5, 0.25, 64), backend=backend, options=options)
    expected = np.clip(np.floor(sums * (0.125 / 64) + 0.5), -128, 127)
    assert scaled.dtype == "i8"
    np.testing.assert_array_equal(scaled.value, expected)


def test_products_of_integers_refuse_shapes_that_do_not_fit():
    with pytest.raises(triptych.BadInput, match=r"a is \[2, 3\], b is \[2, 3\]"):
        ops.quantized_matmul(np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8))


def test_docstring_states_the_shapes():
    assert "x: [N, C, (H,) W], w: [O, C / group, (kh,) kw]" in ops.conv.__doc__
    assert "NumPy broadcasting" in ops.add.__doc__  # of its family


def test_product_equals_numpys_within_rounding(backend, rng):
    a, b = normal(rng, 5, 7), normal(rng, 7, 3)
    result = ops.matmul(a, b, backend=backend, contract="bf16" if backend == "systolic" else "f32")
    tolerance = 3e-2 if backend == "systolic" else 1e-5
    np.testing.assert_allclose(result.value, a @ b, atol=tolerance)
    assert result.time_kind == ("simulated" if backend == "systolic" else "measured")
    assert result.kernel and result.seconds > 0


def test_exact_contract_gives_the_same_bits_on_all_machines(rng):
    x, w = normal(rng, 2, 3, 9, 8), normal(rng, 4, 3, 3, 3)
    bits = {
        backend: ops.conv(x, w, pads=[1, 1, 1, 1], backend=backend, contract="bf16-exact")
        for backend in ("cpu", "cuda-emulated", "systolic")
    }
    assert len({result.value.tobytes() for result in bits.values()}) == 1
    assert bits["systolic"].kernel == "mmu"
    assert bits["systolic"].counters["mmu_macs"] > 0


def test_node_without_a_kernel_on_the_array_runs_on_its_host():
    assert ops.relu(np.float32([-1, 2]), backend="systolic").device == "cpu"


def test_composite_names_the_kernels_it_became(rng):
    result = ops.instance_normalization(
        normal(rng, 2, 3, 5), np.ones(3, np.float32), np.zeros(3, np.float32), backend="cuda-emulated"
    )
    assert " + " in result.kernel
    np.testing.assert_allclose(result.value.mean(axis=2), 0, atol=1e-6)


def test_result_owns_its_memory_and_the_operand_may_go(rng):
    x = normal(rng, 1000)
    kept = np.maximum(x, 0)
    y = ops.relu(x).value
    x[:] = 0
    del x
    triptych.drop_plans()
    np.testing.assert_array_equal(y, kept)
    y[0] = 5  # writable
    assert y.base is not None and not y.flags.owndata


def test_operator_that_updates_its_operand_leaves_the_callers_array_alone():
    old = np.zeros(3, np.float32)
    assert ops.assign(old, np.float32([1, 2, 3])).value.tolist() == [1, 2, 3]
    assert old.tolist() == [0, 0, 0]


@pytest.mark.parametrize("make", [
    lambda x: x.T,
    lambda x: x[::2, ::-1],
    lambda x: np.asfortranarray(x),
    lambda x: np.broadcast_to(x[0], (4, 6)),
    lambda x: np.frombuffer(x.tobytes(), np.float32).reshape(x.shape),
    lambda x: x[:0],
])
def test_any_layout_and_read_only_memory(make, rng):
    x = make(normal(rng, 4, 6))
    np.testing.assert_array_equal(ops.neg(x).value, -x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32", "int64", "bool"])
def test_dtypes_go_through(dtype):
    x = np.array([0, 1, 1], dtype)
    y = ops.reshape(x, shape=[3, 1]).value
    assert y.dtype == x.dtype and y.ravel().tolist() == x.tolist()


def test_bfloat16_of_ml_dtypes(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = normal(rng, 8).astype(ml_dtypes.bfloat16)
    assert ops.reshape(x, shape=[2, 4]).value.dtype == ml_dtypes.bfloat16


def test_dlpack_goes_in_and_out(rng):
    class Producer:  # what PyTorch, JAX and CuPy tensors have
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = normal(rng, 6)
    result = ops.abs(Producer(x))
    np.testing.assert_array_equal(np.from_dlpack(result.value), abs(x))
    assert np.shares_memory(np.from_dlpack(result), result.value)


def test_bfloat16_goes_in_and_out_by_dlpack(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = normal(rng, 3, 4).astype(ml_dtypes.bfloat16)
    y = ops.reshape(triptych.DLPack(x.T), shape=[12]).value
    assert y.dtype == ml_dtypes.bfloat16 and y.tobytes() == x.T.tobytes()
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(triptych.DLPack(y))
    assert tensor.dtype == torch.bfloat16
    tensor[0] = 7
    assert float(y[0]) == 7  # the same memory
    assert ops.reshape(tensor, shape=[12]).value.tobytes() == y.tobytes()


def test_numbers_of_python_are_f32():
    assert ops.add([[1.0, 2.5]], 1.0).value.tolist() == [[2.0, 3.5]]


def test_cache_is_bounded(rng):
    triptych.drop_plans()
    _, capacity = triptych.kept_plans()
    for size in range(1, capacity + 20):
        ops.relu(np.zeros(size, np.float32))
    assert triptych.kept_plans() == (capacity, capacity)
    ops.relu(np.zeros(capacity + 19, np.float32))
    assert triptych.kept_plans() == (capacity, capacity)


def test_threads_share_the_cache(rng):
    triptych.drop_plans()
    arrays = [normal(rng, 1 + i % 30, 17) for i in range(120)]

    def work(i):
        if i % 40 == 7:
            triptych.drop_plans()
        backend = ("cpu", "cuda-emulated")[i % 2]
        return ops.exp(ops.neg(arrays[i], backend=backend), backend=backend).value

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for x, y in zip(arrays, pool.map(work, range(len(arrays)))):
            np.testing.assert_allclose(y, np.exp(-x), rtol=1e-5)


X = np.zeros((1, 3, 8, 8), np.float32)
W = np.zeros((4, 2, 3, 3), np.float32)


@pytest.mark.parametrize("call, error, words", [
    (lambda: ops.relu(X.astype("f8")), triptych.BadInput, "float64.*astype"),
    (lambda: ops.relu(X.astype(">f4")), triptych.BadInput, "byte order"),
    (lambda: ops.relu(np.array(["a"])), triptych.BadInput, "input 0 is <U1"),
    (lambda: ops.relu(object()), triptych.BadInput, "input 0 is object"),
    (lambda: ops.relu([[1.0], [2.0, 3.0]]), triptych.BadInput, r"is no array: .*inhomogeneous[^\n]*$"),
    (lambda: ops.relu(), triptych.BadInput, "takes 1 inputs, got 0"),
    (lambda: ops.conv(X, W), triptych.BadInput, "w has 2 input channels per group, x has 3"),
    (lambda: ops.conv(X, W, pad=1), triptych.BadInput, "no attribute pad; its attributes: kernel_s"),
    (lambda: ops.conv(X, W, pads="x"), triptych.BadInput, "pads cannot be 'x'"),
    (lambda: ops.conv(X, W, group=1.5), triptych.BadInput, "group cannot be 1.5"),
    (lambda: ops.relu(X, backend="tpu"), triptych.BadInput, "this build has: cpu"),
    (lambda: ops.relu(X, backend=3), triptych.BadInput, "backend is 3"),
    (lambda: ops.relu(X, contract="f64"), triptych.BadInput, "bf16-exact"),
    (lambda: ops.relu(X, options={"threads": -1}), triptych.BadInput, "from 0 to 1024, got -1"),
    (lambda: ops.relu(X, options={"speed": 1}), triptych.BadInput, "no option speed.*there are"),
    (lambda: ops.all_reduce(X), triptych.Unsupported, "several ranks"),
    (lambda: ops.softmax(X, options={"kernel": "gemm"}), triptych.Error, "gemm"),
])
def test_misuse_is_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_machine_that_is_not_here_says_why():
    absent = [d for d in triptych.devices() if not d["available"]]
    for device in absent:
        with pytest.raises(triptych.DeviceUnavailable, match=device["backend"]):
            ops.relu(X, backend=device["backend"])
    assert {d["backend"] for d in triptych.devices()} >= {"cpu", "cuda", "systolic"}


def test_version_is_the_projects():
    assert re.fullmatch(r"\d+\.\d+\.\d+", triptych.__version__)


def test_bad_input_is_a_value_error_too():
    assert issubclass(triptych.BadInput, (triptych.Error, ValueError))
    assert issubclass(triptych.Error, RuntimeError)


def random_operand(rng):
    kind = rng.integers(8)
    shape = tuple(rng.integers(0, 5, rng.integers(0, 5)))
    dtypes = ["f4"] * 24 + ["f2", "f8", "i1", "u1", "i4", "i8", "?", "c8", "M8[s]", "U2", "O"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = rng.integers(-3, 9, shape).astype(dtypes[rng.integers(len(dtypes))])
    if kind == 0:
        array = array.T
    if kind == 1:
        array = array[..., ::2] if array.ndim else array
    if kind == 2:
        array.flags.writeable = False
    if kind == 3:
        return [None, "text", 3, 2.5, [], [[1.0], [2.0, 3.0]], {}, ops][rng.integers(8)]
    return array


def random_attribute(rng):
    return [1, 0, -1, 7, 2.5, "", "SAME_UPPER", [1, 1], [2, 2, 2, 2], [-1], [], None, "x", [1.5],
            (2, 3), 1 << 40, [1 << 62, 1 << 62], float("nan")][rng.integers(18)]


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_compute_or_say_why_not(seed):
    rng = np.random.default_rng(seed)
    table = _triptych.operators()
    computed = 0
    for _ in range(600):
        name, _, attributes, _, _ = table[rng.integers(len(table))]
        operands = [random_operand(rng) for _ in range(rng.integers(0, 4))]
        if rng.integers(2) and operands:  # alike, so that more of them compute
            operands = [operands[0]] * len(operands)
        chosen = {_triptych.python_word(a): random_attribute(rng) for a in attributes if rng.random() < 0.1}
        backend = ("cpu", "cuda-emulated", "systolic", "cuda")[rng.integers(4)]
        contract = ("f32", "bf16", "bf16-exact", "int8")[rng.integers(4)]
        try:
            getattr(ops, name)(*operands, backend=backend, contract=contract, **chosen)
            computed += 1
        except (triptych.Error, MemoryError) as error:
            assert len(str(error)) > 10 or isinstance(error, MemoryError)
    assert computed > 10


def test_memory_has_a_limit():
    large = np.zeros(32 << 20, np.float32)  # 128 MiB, and as much of a result
    triptych.set_max_memory(100)
    try:
        with pytest.raises(triptych.BadInput, match=r"needs \d+ MiB of memory; .*max-memory"):
            triptych.ops.relu(large)
        assert triptych.ops.relu(large[:10]).value.shape == (10,)
        for wrong in (0, -1, 1 << 40):
            with pytest.raises(triptych.BadInput, match="set_max_memory"):
                triptych.set_max_memory(wrong)
    finally:
        triptych.set_max_memory(1 << 20)


def test_results_are_used_as_values_of_a_graph_are():
    x = np.float32([[1, 2], [3, 4]])

    def body(x):
        a, b = ops.split(x, axis=1, split=[1, 1])
        return (a + 2 * b) ** 2 / 4 - ops.abs(-a) @ np.float32([[1]])

    got = body(x)
    traced = triptych.function((2, 2))(body)
    assert got.shape == (2, 1) and got.dtype == "f32"
    np.testing.assert_array_equal(got.value, traced.plan().run(x=x)["y0"])
    parts = ops.split(x, axis=1, split=[1, 1])
    assert len(parts) == 2 and parts[1].value.tolist() == [[2], [4]] and parts[1].device == parts.device
    with pytest.raises(triptych.BadInput, match="has 2 outputs; take one of them"):
        ops.neg(parts)
    with pytest.raises(TypeError, match="has one output"):
        len(got)
    assert (ops.neg(x) == -x).value.all() and (np.float32(2) * ops.neg(x)).shape == (2, 2)
    assert bool(ops.reduce_sum(x, keepdims=False) > 9) and ops.add(np.int64([1]), 2).dtype == "i64"


KEYS = [
    np.s_[1],
    np.s_[-1],
    np.s_[:, 2],
    np.s_[1:],
    np.s_[..., ::-1],
    np.s_[:, ::-2, 0],
    np.s_[1, 2, 0],
    np.s_[...],
    np.s_[:, None, 1:3],
    np.s_[None, ..., -1],
    np.s_[5:],
    np.s_[:, 3:1:-1],
    np.s_[:, [3, 0, 0]],
    np.s_[1:, ..., np.array([[1, 0], [0, 1]])],
    np.s_[np.int64(0)],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices_are_those_of_numpy(key):
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    traced = triptych.function((3, 4, 2))(lambda x: x[key]).plan().run(x=x)["y0"]
    eager = ops.relu(x)[key].value
    assert traced.shape == x[key].shape and eager.shape == x[key].shape
    np.testing.assert_array_equal(traced, x[key])
    np.testing.assert_array_equal(eager, x[key])


def test_values_have_a_transpose_and_a_gradient_through_indices():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(triptych.function((2, 3))(lambda x: x.T[1:]).plan().run(x=x)["y0"], x.T[1:])
    np.testing.assert_array_equal(ops.relu(x).T.value, x.T)
    g = triptych.Graph()
    w = g.parameter("w", x)
    plan = g.train(ops.reduce_sum(w[:, [2, 2]] * 3 + w[:1, 0], keepdims=False), "sgd").plan()
    plan.run(learning_rate=1.0)
    np.testing.assert_array_equal(plan.states["w"], x - np.float32([[4, 0, 6], [0, 0, 6]]))


def test_other_indices_are_refused_with_the_remedy():
    x = triptych.Graph().input("x", (3, 4))
    index = triptych.Graph().input("i", (2,), "i64")
    for key, error, text in [
        (x > 0, TypeError, "ops.where"),
        (True, TypeError, "ops.where"),
        ("a", TypeError, "use integers, slices"),
        (1.5, TypeError, "use integers, slices"),
        (([0], [1]), TypeError, "ops.gather after a reshape"),
        ((0, index), TypeError, "alone or with slices"),
        ((0, 1, 2), IndexError, "too many indices"),
        ((..., ...), IndexError, "one ..."),
        (3, IndexError, "axis 0 of size 3"),
        ((0, -5), IndexError, "axis 1 of size 4"),
    ]:
        with pytest.raises(error, match=re.escape(text)):
            x[key]
    with pytest.raises(TypeError, match="ops.split"):
        first, *rest = x
