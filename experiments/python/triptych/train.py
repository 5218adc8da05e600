"""Training runs: the command line's `triptych train`, told and asked from Python."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, cast


from . import _triptych
from .data import MACHINE, Array, given, merge, picture_array, run_config
from .table import Table, format_value

#: Fields of a run's configuration that may change when it is resumed, as "steps" or "data.source".
MAY_CHANGE = tuple(
    option["field"]
    for option in _triptych.run_options()
    if not option["of_machine"] and option["field"] and option["policy"] == "replaceable"
)


def _require_changeable(names: Iterable[str]) -> None:
    for name in names:
        if name not in MAY_CHANGE:
            raise _triptych.BadInput(
                f"{name} cannot change in a resumed run; these can: {', '.join(MAY_CHANGE)}"
            )


def _bar(done: int, total: int, seconds: float, text: str, width: int = 20) -> str:
    filled = width * done // max(1, total)
    rate = done / seconds if seconds > 0 else 0.0
    left = (total - done) / rate if rate > 0 else 0.0
    return (
        f"{100 * done // max(1, total):3d}%|{'█' * filled}{' ' * (width - filled)}| {done}/{total} "
        f"[{seconds:.0f}s<{left:.0f}s, {rate:.3g} steps/s] {text}"
    )


class Progress:
    """A bar on a terminal or in a notebook, and a line for each epoch."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        notebook = type(self._stream).__module__.startswith("ipykernel")
        self._draws = notebook or self._stream.isatty()
        self._begun: tuple[int, float] | None = None
        self._drawn = 0.0
        self._width = 0

    def _line(self, text: str, end: str) -> None:
        self._stream.write("\r" + text.ljust(self._width) + end)
        self._stream.flush()
        self._width = len(text) if end == "" else 0

    def on_note(self, text: str) -> None:
        """A line."""
        self._stream.write(text + "\n")

    def on_step(self, step: int, total: int, epoch: int, loss: float) -> None:
        """Draws the bar, ten times a second at most."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = (step - 1, now)
        if not self._draws or (now - self._drawn < 0.1 and step < total):
            return
        self._drawn = now
        first, begin = self._begun
        text = f"epoch {epoch} loss {loss:.4f}"
        self._line(_bar(step - first, total - first, now - begin, text), "")

    def on_epoch(self, report: Mapping[str, Any]) -> None:
        """A line with loss, scores and speed."""
        words = [f"epoch {report['epoch']:3d}  loss {report['loss']:.4f}"]
        words += [f"{key} {report[key]:.4f}" for key in ("dice", "iou") if report[key] is not None]
        words.append(f"{report['images_per_second']:.1f} images/s ({report['time_kind']})")
        text = "  ".join(words)
        if self._draws:
            self._line(text, "\n")
        else:
            self._stream.write(text + "\n")


class _Listener:
    """Passes what the run tells on to each callback that wants it."""

    def __init__(self, callbacks: Iterable[Any]) -> None:
        self._callbacks = list(callbacks)

    def _tell(self, method: str, *values: Any) -> bool | None:
        stop = None
        for callback in self._callbacks:
            told = getattr(callback, method, None)
            if told is not None and told(*values) is False:
                stop = True
        return stop

    def on_note(self, text: str) -> bool | None:
        return self._tell("on_note", text)

    def on_step(self, step: int, total: int, epoch: int, loss: float) -> bool | None:
        return self._tell("on_step", step, total, epoch, loss)

    def on_image(self, judged: int, images: int) -> bool | None:
        return self._tell("on_image", judged, images)

    def on_epoch(self, report: dict[str, Any]) -> bool | None:
        return self._tell("on_epoch", report)


class Trainer:
    """A training run in a folder that `triptych evaluate`, `run` and `train --resume` accept.

    model: a preset's name ("unet-s"), or {"name": "unet-s", "classes": 4}. data: nothing (synthetic
    pictures), a folder with images/ and masks/, a dict with the fields `data` of a run's
    configuration, (images, masks), triptych.data.Arrays, or a loader of batches (x, target) such as
    PyTorch's DataLoader. validation: (images, masks) or a loader. The default is a share of the
    images, or none for a loader. out: the run's folder (default: a new one in runs/). machine: the
    command line's options of a machine and of ranks, such as
    {"ranks": 4, "strategy": "zero1", "machine": "mmu16"}. All but "machine" may be keywords, too:
    threads=1. Other keywords are the fields of a run's configuration: epochs, batch, learning_rate,
    seed, loss, ...

    callbacks: objects with any of on_step(step, total, epoch, loss), on_epoch(report),
    on_note(text), on_image(judged, images). A call that returns False stops the run cleanly.
    """

    def __init__(
        self,
        model: str | Mapping[str, Any] = "unet-s",
        data: Any = None,
        *,
        validation: Any = None,
        out: str | os.PathLike[str] | None = None,
        backend: str = "cpu",
        contract: str = "f32",
        machine: Mapping[str, Any] | None = None,
        callbacks: Iterable[Any] = (),
        progress: bool = True,
        **changes: Any,
    ) -> None:
        options = {"backend": backend, "contract": contract, **(machine or {})}
        options |= {key: changes.pop(key) for key in MACHINE & changes.keys()}
        config = run_config(model, changes)
        self._set_data(config, data, validation)
        folder = pathlib.Path(out) if out is not None else _new_folder(config["model"]["name"])
        self._begin(callbacks, progress)
        try:
            self._native = _triptych.Trainer.begin(json.dumps(config), options, str(folder), *self._data)
        except BaseException:
            if out is None:
                with contextlib.suppress(OSError):  # it is not empty: the run has begun
                    folder.rmdir()
            raise

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        data: Any = None,
        *,
        validation: Any = None,
        machine: Mapping[str, Any] | None = None,
        callbacks: Iterable[Any] = (),
        progress: bool = True,
        **changes: Any,
    ) -> Trainer:
        """Resumes the run in `folder`, with the bits of an uninterrupted run.

        A Trainer locks its folder while it exists: call its train() again, or `del` it first. Pass the
        same data again. A loader must repeat the same batches for the same bits. The fields in
        MAY_CHANGE of the configuration may change, those of the data as data={"cache_mib": 100}.
        `machine` changes options of the machine.
        """
        self = cls.__new__(cls)
        _require_changeable(changes)
        if isinstance(data, Mapping):
            _require_changeable(f"data.{key}" for key in data)
        config = json.loads(_triptych.saved_config(os.fspath(folder)))
        merge(config, changes)
        self._set_data(config, data, validation)
        self._begin(callbacks, progress)
        self._native = _triptych.Trainer.resume(
            json.dumps(config), dict(machine or {}), os.fspath(folder), *self._data
        )
        return self

    def _set_data(self, config: dict[str, Any], data: Any, validation: Any) -> None:
        self._data: tuple[Any, Any, int] = (None, None, 0)
        if isinstance(data, (str, os.PathLike)):
            data = {"source": os.path.abspath(data)}
        if data is None or isinstance(data, Mapping):
            if validation is not None:
                raise _triptych.BadInput(
                    "validation goes with pictures or batches that are given; a run from files holds "
                    "a share of them out: data={..., 'validation_fraction': 0.2}"
                )
            merge(config["data"], data or {}, "data.")
            return
        config["data"]["source"] = "given"
        self._data = given(data, validation, config["model"]["classes"])

    def _begin(self, callbacks: Iterable[Any], progress: bool) -> None:
        self.callbacks: list[Any] = list(callbacks)
        self.progress = progress
        self._finished = False

    def train(self) -> Trainer:
        """Trains until the configuration's epochs or steps are reached, and returns itself.

        Ctrl-C and exceptions of callbacks stop it after a step and are raised when the checkpoint is
        saved. train() again continues. Other threads run meanwhile.
        """
        bar = [Progress()] if self.progress else []
        self._finished = self._native.train(_Listener([*bar, *self.callbacks]))
        return self

    def stop(self) -> None:
        """Lets train() return after the step. Call it from a callback or another thread."""
        self._native.stop()

    @property
    def finished(self) -> bool:
        """True when the last train() was not stopped."""
        return self._finished

    @property
    def losses(self) -> Array:
        """The loss of every step so far."""
        return cast(Array, self._native.losses())

    @property
    def epochs(self) -> Table:
        """Loss, scores and time of every epoch so far."""
        return Table(self._native.epochs())

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration."""
        return cast("dict[str, Any]", json.loads(self._native.config()))

    @property
    def folder(self) -> pathlib.Path:
        """The run's folder."""
        return pathlib.Path(self._native.folder())

    @property
    def states(self) -> dict[str, Array]:
        """A copy of every state by name: parameters, running statistics, the optimiser's."""
        return cast("dict[str, Array]", self._native.states())

    @property
    def weights_sha256(self) -> str:
        """Fingerprint of all parameters, as in `triptych train --json`."""
        return cast(str, self._native.weights_sha256())

    def predict(self, images: Iterable[Any]) -> list[Array]:
        """The classes of each picture's pixels, u8 [height, width], for any size."""
        return cast("list[Array]", self._native.predict([picture_array(i) for i in images]))

    def __repr__(self) -> str:
        losses = self.losses
        last = f", loss {format_value(float(losses[-1]))}" if len(losses) else ""
        return (
            f"<Trainer of {self.config['model']['name']} on {self._native.device()}, "
            f"{len(losses)} of {self._native.total_steps()} steps{last}; {self.folder}>"
        )

    def _repr_html_(self) -> str:
        import html

        return f"<p>{html.escape(repr(self))}</p>{self.epochs._repr_html_()}"


def _new_folder(model: str) -> pathlib.Path:
    """A folder that this call has made, so that no other process has it."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    first = folder = pathlib.Path("runs") / f"{model}-{stamp}"
    copy = 2
    while True:
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            folder = first.with_name(f"{first.name}-{copy}")
            copy += 1
