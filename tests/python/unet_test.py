"""A U-Net that is built and trained in Python has the bits of the command line's."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess

import numpy as np
import pytest

import triptych
from triptych import ops

# A wrong bit of one step is in all later weights. The part cases takes more of them.
STEPS, BATCH, SEED = 20 if "TRIPTYCH_ALL_CASES" in os.environ else 4, 1, 1


def unet(net, x, base=8, depth=3, classes=1):
    """Ronneberger et al., 2015, with same padding and batch normalisation."""
    skips = []
    for level in range(1, depth + 1):
        for i in (0, 1):
            x = net.conv_bn_relu(f"down{level}", i, x, base << (level - 1))
        skips.append(x)
        x = ops.max_pool(x, kernel_shape=[2, 2], strides=[2, 2])
    for i in (0, 1):
        x = net.conv_bn_relu("bottom", i, x, base << depth)
    for level in range(depth, 0, -1):
        skip = skips[level - 1]
        up = net.up_conv2x2(f"up{level}.transpose", x, skip.shape[1])
        x = ops.concat(skip, up, axis=1)
        for i in (0, 1):
            x = net.conv_bn_relu(f"up{level}", i, x, skip.shape[1])
    return net.logits_head("head", x, classes)


def training_step(batch=BATCH):
    with triptych.Graph() as g:
        x = g.input("x", (batch, 1, 64, 64))
        logits = unet(triptych.nn.Layers(seed=SEED), x)
        loss = triptych.nn.segmentation_loss(logits, g.input("target", logits.shape))
        g.output("logits", logits)
    return g.train(loss, "adam")


def pictures():
    return triptych.data.Pictures("unet-s", seed=SEED, data={"validation_fraction": 0.0})


@pytest.fixture(scope="module")
def command_line(tmp_path_factory):
    program = os.environ.get("TRIPTYCH_PROGRAM")
    if not program:
        pytest.skip("this build has no program")
    options = dict(model="unet-s", contract="bf16-exact", epochs=1, steps=STEPS, batch=BATCH,
                   seed=SEED, validation=0, threads=1, out=tmp_path_factory.mktemp("run") / "a")
    options["steps-per-epoch"] = STEPS
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "train", *words, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)["results"][0]


@pytest.mark.parametrize("backend", ["cpu", "cuda-emulated", "systolic"])
def test_unet_of_python_has_the_command_lines_weights(backend, command_line):
    plan = training_step().plan(backend, "bf16-exact")
    data = pictures()
    losses = []
    for step in range(STEPS):
        x, target = data.draw(step * BATCH, BATCH)
        losses.append(plan.run(x=x, target=target, learning_rate=np.float32(1e-3))["loss"].item())
    assert np.float32(losses).tolist() == np.float32(command_line["losses"]).tolist()
    assert plan.weights_sha256 == command_line["weights_sha256"]


def test_fingerprint_sees_every_weight():
    plan = training_step().plan()
    before = plan.weights_sha256
    bias = plan.states["head.bias"]
    plan.load_states({"optimizer.step": np.int64(3)})
    assert plan.weights_sha256 == before  # not a weight
    plan.load_states({"head.bias": np.nextafter(bias, np.float32(9))})
    assert plan.weights_sha256 != before


@pytest.mark.parametrize("call, words", [
    (lambda: triptych.data.Pictures("unet-s", sede=1), "no sede; did you mean .seed"),
    (lambda: triptych.data.Pictures("unet-s", data={"sauce": 1}), "no data.sauce"),
    (lambda: triptych.data.Pictures("unet-x"), "unet-s"),
    (lambda: triptych.data.Pictures("unet-s", seed="one"), "seed"),
    (lambda: triptych.data.Pictures("unet-s", data={"source": "/nowhere"}), "/nowhere"),
    (lambda: pictures().draw(-1, 1), "from 0 on"),
    (lambda: pictures().draw(0, 0), "at least 1"),
    (lambda: triptych.nn.Layers().conv3x3("c", triptych.Graph().input("x", (2, 3)), 4), "4 axes"),
    (lambda: triptych.nn.Layers().conv3x3("c", triptych.Graph().input("x", (1, 1, 4, 4)), 0),
     "at least 1 channel"),
    (lambda: triptych.nn.segmentation_loss(*two_graphs(), "focal"), "different graphs"),
])
def test_misuse_is_a_sentence(call, words):
    with pytest.raises(triptych.BadInput, match=words):
        call()


def two_graphs():
    return [triptych.Graph().input("x", (1, 1, 4, 4)) for _ in range(2)]
