"""Training runs from Python: the command line's bits, given pictures and batches, stopping, resuming."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import triptych

SMALL = dict(epochs=2, steps_per_epoch=3, batch=2, seed=5, progress=False, contract="bf16-exact",
             data={"synthetic_images": 6, "validation_fraction": 0.34})


def pictures(count=4, size=64, seed=0):
    """Discs on noise, and where they are."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    masks = np.array([(x - 20 - 3 * i) ** 2 + (y - 30) ** 2 < 150 for i in range(count)])
    return (rng.random((count, size, size), np.float32) * 0.3 + masks).astype(np.float32), masks


class Loader:
    """Batches with a length, as PyTorch's DataLoader; counts its passes."""

    def __init__(self, batch=2, count=8, drop=(), factor=1, scale=1):
        images, masks = pictures(count)
        self.batches = [
            (images[i:i + batch, None] * np.float32(scale),
             masks[i:i + batch, None].astype(np.float32) * np.float32(factor))
            for i in range(0, count, batch)
        ]
        self.drop = drop
        self.passes = 0

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        self.passes += 1
        for i, batch in enumerate(self.batches):
            if i not in self.drop:
                yield batch


def with_loader(tmp_path, loader, name="run", model="unet-s", **changes):
    options = dict(epochs=2, batch=2, seed=5, progress=False, contract="bf16-exact")
    return triptych.Trainer(model, loader, out=tmp_path / name, **{**options, **changes})


def test_run_has_the_command_lines_bits(tmp_path):
    program = os.environ.get("TRIPTYCH_PROGRAM")
    if not program:
        pytest.skip("this build has no program")
    options = {"model": "unet-s", "contract": "bf16-exact", "epochs": 2, "steps-per-epoch": 3,
               "batch": 2, "seed": 5, "synthetic-images": 6, "validation": 0.34, "out": tmp_path / "a"}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([program, "train", *words, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)["results"][0]
    ours = triptych.Trainer("unet-s", out=tmp_path / "b", **SMALL).train()
    assert ours.finished and ours.losses.tolist() == np.float32(theirs["losses"]).tolist()
    assert ours.weights_sha256 == theirs["weights_sha256"]
    assert [e["dice"] for e in ours.epochs] == [e["dice"] for e in theirs["epochs"]]
    judged = subprocess.run([program, "evaluate", tmp_path / "b", "--json"],
                            capture_output=True, text=True)
    assert judged.returncode == 0, judged.stderr


def test_ranks_have_the_bits_of_one(tmp_path):
    options = {**SMALL, "batch": 4, "epochs": 1, "order": "shard-tree", "shards": 4}
    hashes = [
        triptych.Trainer("unet-s", out=tmp_path / str(ranks), ranks=ranks, **options)
        .train().weights_sha256
        for ranks in (1, 2, 4)
    ]
    assert len(set(hashes)) == 1


def test_given_pictures_train_and_are_predicted(tmp_path):
    images, masks = pictures()
    trainer = triptych.Trainer("unet-s", (images, masks), validation=(images[:2], masks[:2]),
                               out=tmp_path / "run", epochs=8, steps_per_epoch=6, batch=2,
                               learning_rate=3e-3, seed=1, progress=False).train()
    predicted = trainer.predict(images)
    assert [p.dtype for p in predicted] == [np.uint8] * 4 and predicted[0].shape == (64, 64)
    wrong = np.mean([p != m for p, m in zip(predicted, masks)])
    assert wrong < 0.05 and trainer.epochs[-1]["dice"] > 0.8
    assert trainer.epochs.column("epoch").tolist() == list(range(1, 9))
    assert set(trainer.states) >= {"head.weight", "optimizer.step"}


def test_whole_numbers_are_divided_by_their_largest(tmp_path):
    images, masks = pictures(2)
    levels = np.round(images.clip(0, 1) * 255).astype(np.uint8)
    hashes = []
    for name, given in (("u8", levels), ("f32", levels / np.float32(255))):
        run = triptych.Trainer("unet-s", (given, masks), out=tmp_path / name, epochs=1, steps=2,
                               batch=2, seed=5, progress=False)
        hashes.append(run.train().weights_sha256)
    assert hashes[0] == hashes[1]


def test_loader_gives_each_epoch_a_pass(tmp_path):
    loader = Loader()
    told = []

    class Callback:
        def on_step(self, step, total, epoch, loss):
            told.append((step, total, epoch, np.isfinite(loss)))

    run = with_loader(tmp_path, loader, callbacks=[Callback()]).train()
    assert loader.passes == 2 and len(run.losses) == 8
    assert told == [(i + 1, 8, i // 4 + 1, True) for i in range(8)]
    assert run.epochs[-1]["dice"] is None  # nothing validates


@pytest.mark.parametrize("stop_at", [3, 4])
def test_run_goes_on_to_the_same_bits(tmp_path, stop_at):
    whole = with_loader(tmp_path, Loader(), "whole").train()

    class Stop:
        def on_step(self, step, *_):
            return step < stop_at

    part = with_loader(tmp_path, Loader(), "part", callbacks=[Stop()]).train()
    assert not part.finished and len(part.losses) == stop_at
    del part  # lets go of the folder
    resumed = triptych.Trainer.resume(tmp_path / "part", Loader(), progress=False).train()
    assert resumed.finished and resumed.losses.tolist() == whole.losses.tolist()
    assert resumed.weights_sha256 == whole.weights_sha256
    longer = resumed.folder
    del resumed
    assert len(triptych.Trainer.resume(longer, Loader(), epochs=3, progress=False).train().losses) == 12


def test_what_a_callback_raises_comes_out_after_the_checkpoint(tmp_path):
    class Raise:
        def on_step(self, step, *_):
            if step == 2:
                raise LookupError("seen enough")

    run = triptych.Trainer("unet-s", out=tmp_path / "run", callbacks=[Raise()], **SMALL)
    with pytest.raises(LookupError, match="seen enough"):
        run.train()
    assert len(run.losses) == 2
    run.callbacks.clear()
    assert len(run.train().losses) == 6  # it goes on where it was


def test_what_the_loader_raises_comes_out(tmp_path):
    with pytest.raises(triptych.BadInput, match="has 4 batches, and had fewer"):
        with_loader(tmp_path, Loader(drop=(2,))).train()


def test_control_c_stops_and_saves(tmp_path):
    script = textwrap.dedent(f"""
        import os, signal, triptych
        class Kill:
            def on_step(self, step, *_):
                if step == 2: os.kill(os.getpid(), signal.SIGINT)
        run = triptych.Trainer("unet-s", out={str(tmp_path / "run")!r}, epochs=50, batch=2,
                               progress=False, callbacks=[Kill()])
        try:
            run.train()
        except KeyboardInterrupt:
            print("stopped at", len(run.losses))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout.split()[-1])
    assert 2 <= steps <= 3
    assert len(triptych.Trainer.resume(tmp_path / "run", progress=False).losses) == steps


def test_interpreter_ends_while_a_thread_trains(tmp_path):
    script = textwrap.dedent(f"""
        import threading, triptych
        begun = threading.Event()
        class Told:
            def on_step(self, *_): begun.set()
        run = triptych.Trainer("unet-s", out={str(tmp_path / "run")!r}, epochs=10**6, batch=2,
                               progress=False, callbacks=[Told()])
        threading.Thread(target=run.train, daemon=True).start()
        begun.wait()
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    assert len(triptych.Trainer.resume(tmp_path / "run", progress=False).losses) > 0


def test_other_threads_run_meanwhile_and_may_stop_it(tmp_path):
    run = triptych.Trainer("unet-s", out=tmp_path / "run", **{**SMALL, "epochs": 10 ** 6})
    timer = threading.Timer(0.5, run.stop)
    timer.start()
    assert not run.train().finished


def test_progress_is_lines_where_nobody_looks(tmp_path, capsys):
    triptych.Trainer("unet-s", out=tmp_path / "run", **{**SMALL, "progress": True}).train()
    text = capsys.readouterr().err
    assert "epoch   1  loss" in text and "images/s (measured)" in text and "\r" not in text


def test_torch_loader_with_workers(tmp_path):
    torch = pytest.importorskip("torch")
    images, masks = pictures(8)
    data = torch.utils.data.TensorDataset(torch.from_numpy(images[:, None]),
                                          torch.from_numpy(masks[:, None].astype(np.float32)))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2)
    ours = with_loader(tmp_path, loader, "torch").train()
    assert ours.weights_sha256 == with_loader(tmp_path, Loader(), "plain").train().weights_sha256


@pytest.mark.parametrize("call, words", [
    (lambda out: triptych.Trainer("unet-s", 5, out=out), "data is int; give"),
    (lambda out: triptych.Trainer("unet-s", pictures(), out=out, epoch=3), "a run has no epoch;"),
    (lambda out: triptych.Trainer("unet-s", pictures(), out=out, parallel="zero1"),
     "a run has no parallel; did you mean .strategy"),
    (lambda out: triptych.Trainer("unet-s", pictures(), out=out, machine={"parallel": "zero1"}),
     "no option parallel of a machine; did you mean .strategy"),
    (lambda out: triptych.Trainer("unet-s", out=out, epochs=0), "epochs"),
    (lambda out: triptych.Trainer("unet-s", out=out, batch=3, ranks=2), "batch"),
    (lambda out: triptych.Trainer("unet-s", out=out, ranks=-1), "from 1 to 1024, got -1"),
    (lambda out: triptych.Trainer("unet-s", out=out, machine={"transport": "mpi"}), "mpirun"),
    (lambda out: triptych.Trainer("unet-s", out=out, machine={"rank": 2}), "no option rank of"),
    (lambda out: triptych.Trainer("unet-s", (pictures()[0], pictures()[1][:3]), out=out),
     "4 pictures and 3 masks"),
    (lambda out: triptych.Trainer("unet-s", (pictures()[0], 255 * pictures()[1]), out=out),
     "class 255; there are 2 classes"),
    (lambda out: triptych.Trainer("unet-s", (pictures()[0].astype(int), pictures()[1]), out=out),
     "a picture is int64"),
    (lambda out: triptych.Trainer("unet-s", ([np.zeros((64, 64), np.uint8), np.zeros((64, 64), np.uint16)],
                                             pictures()[1][:2]), out=out), "8 bits and \"picture 1\" 16 bits"),
    (lambda out: with_loader(out, Loader(factor=255)).train(), "batch 0: its target has the value 255"),
    (lambda out: with_loader(out, Loader(factor=-1)).train(), "batch 0: its target has the value -1"),
    (lambda out: with_loader(out, Loader(factor=0.9)).train(), "target of batch 0 is float32"),
    (lambda out: with_loader(out, Loader(factor=7), model={"name": "unet-s", "classes": 3}).train(),
     "the value 7, which is no class: they are 0 to 2, and -100"),
    (lambda out: with_loader(out, Loader(batch=2, scale=np.inf)).train(), "batch 0: it has a value of"),
    (lambda out: with_loader(out, Loader(), batch=4).train(), "rows 0 to 4 of the batch"),
    (lambda out: with_loader(out, Loader(), ranks=2, strategy="ps-async"), "step together"),
    (lambda out: triptych.Trainer.resume(out, batch=3), "batch cannot change"),
    (lambda out: triptych.Trainer.resume(out / "nothing"), "nothing"),
])
def test_misuse_is_a_sentence(tmp_path, call, words):
    with pytest.raises(triptych.BadInput, match=words):
        call(tmp_path)


def test_given_data_is_asked_for_again(tmp_path):
    run = with_loader(tmp_path, Loader())
    folder = run.folder
    del run
    with pytest.raises(triptych.BadInput, match="must give them again"):
        triptych.Trainer.resume(folder)
    program = os.environ.get("TRIPTYCH_PROGRAM")
    if program:
        done = subprocess.run([program, "train", "--resume", folder], capture_output=True, text=True)
        assert done.returncode == 2 and "must give them again" in done.stderr


def test_the_table_of_options_covers_the_machine_and_says_what_may_change():
    from triptych import _triptych
    from triptych.train import MAY_CHANGE
    rows = {row["name"]: row for row in _triptych.run_options()}
    missing = [name for name, row in rows.items() if row["of_machine"] and not row["python"]]
    assert missing == [], "options of a machine that Python cannot set"
    assert rows["--kernel"]["policy"] == "stored" and rows["--threads"]["policy"] == "free"
    assert {"steps", "memory_limit_mib", "data.cache_mib", "data.source"} <= set(MAY_CHANGE)
    assert not {"seed", "init", "data.labels"} & set(MAY_CHANGE)


def test_each_keyword_of_a_machine_has_the_type_and_the_limits_of_its_option(tmp_path):
    from triptych import _triptych
    rows = [row for row in _triptych.run_options() if row["python"]]
    assert len(rows) > 20
    for row in rows:
        name = row["python"]
        with pytest.raises(triptych.BadInput, match=f"option {name} is"):
            triptych.Trainer("unet-s", out=tmp_path, machine={name: object()})
        if row["range"]:
            beyond = 10 * int(float(row["range"].split("..")[1]))
            with pytest.raises(triptych.BadInput, match=f'"{name}" must be from .*, got '):
                triptych.Trainer("unet-s", out=tmp_path, machine={name: beyond})
        if name not in ("machine", "backend", "contract"):
            with pytest.raises(triptych.BadInput, match=f"option {name} is"):
                triptych.Trainer("unet-s", out=tmp_path, **{name: object()})


def test_a_resumed_run_has_its_own_kernels_and_refuses_others(tmp_path):
    wide = {"name": "unet-s", "base": 8, "depth": 1, "size": 32}

    def begin(out, steps, **machine):
        run = triptych.Trainer(wide, {"synthetic_images": 6}, out=tmp_path / out, batch=2, epochs=0, steps=steps,
                               steps_per_epoch=3, machine=machine, threads=1, progress=False)
        return run.train()
    whole = begin("whole", 4, winograd=False).weights_sha256
    assert whole != begin("plain", 4).weights_sha256, "the option changes bits"
    del_me = begin("part", 2, winograd=False)
    del del_me
    for machine, says in (({"winograd": True}, "no-winograd"), ({"kernel": "nonsense"}, "kernel"),
                          ({"choice": "table"}, "choice"), ({"contract": "bf16"}, "contract")):
        with pytest.raises(triptych.BadInput, match=f"{says} cannot change"):
            triptych.Trainer.resume(tmp_path / "part", machine=machine, progress=False)
    with pytest.raises(triptych.BadInput, match="data.labels cannot change"):
        triptych.Trainer.resume(tmp_path / "part", {"labels": "0,1"}, progress=False)
    rest = triptych.Trainer.resume(tmp_path / "part", {"cache_mib": 1}, steps=4, progress=False,
                                   machine={"threads": 2, "winograd": False, "timeout": 9})
    assert rest.train().weights_sha256 == whole
    assert rest.config["data"]["cache_mib"] == 1
    with pytest.raises(triptych.BadInput, match="nonsense.*one of: "):
        begin("nonsense", 1, kernel="nonsense")


def test_options_of_links_and_graphs_have_the_command_lines_limits(tmp_path):
    simulated = {"ranks": 2, "transport": "simulated", "link_latency": 1e-5, "link_bandwidth": 1e9, "threads": 1}
    triptych.Trainer("unet-s", out=tmp_path / "run", epochs=0, steps=1, machine=simulated, progress=False)
    for option, value in (("link_latency", -1), ("link_bandwidth", 0), ("choice", "fastest"), ("graph", "no")):
        with pytest.raises(triptych.BadInput, match=option.replace("_", ".") if option != "choice" else "fastest"):
            triptych.Trainer("unet-s", out=tmp_path / option, machine={**simulated, option: value}, progress=False)
