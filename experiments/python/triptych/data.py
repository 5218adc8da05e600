"""Pictures with masks: as a run of the command line draws them, from arrays, from a DataLoader."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy

from . import _triptych

Array = numpy.ndarray[Any, Any]

#: Keywords of a machine and of ranks.
MACHINE = {option["python"] for option in _triptych.run_options() if option["python"]}


def merge(into: dict[str, Any], changes: Mapping[str, Any], path: str = "") -> None:
    """Changes fields of a run's configuration. Raises BadInput for one that it lacks."""
    for key, value in changes.items():
        if key not in into:
            names = sorted({*into, *(() if path else MACHINE)})
            near = _triptych.suggestion(key, names) or f"; there are: {', '.join(names)}"
            raise _triptych.BadInput(f"a run has no {path}{key}{near}")
        if isinstance(into[key], dict) and isinstance(value, dict):
            merge(into[key], value, f"{path}{key}.")
        else:
            into[key] = value


def run_config(model: str | Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a run of a preset; a mapping is one with changed fields: {"name":
    "unet-s", "classes": 4}."""
    if isinstance(model, str):
        model = {"name": model}
    if not isinstance(model, Mapping) or "name" not in model:
        raise _triptych.BadInput(f"a model is a preset's name, or a dict with \"name\", got {model!r}")
    config = cast("dict[str, Any]", json.loads(_triptych.run_config(model["name"])))
    merge(config["model"], model, "model.")
    merge(config, changes)
    return config


class Pictures:
    """The training pictures of a run.

    `model` is a preset, which gives the size and the classes. Keywords change the fields of a run's
    configuration: Pictures("unet-s", seed=1, data={"source": "FOLDER"}).
    """

    def __init__(self, model: str = "unet-s", **changes: Any) -> None:
        self.config = run_config(model, changes)
        self._native = _triptych.Pictures(json.dumps(self.config))

    def draw(self, first: int, count: int) -> tuple[Array, Array]:
        """(x, target) of samples first .. first + count - 1 of the run: step s of batch size B is
        draw(s * B, B). x: f32 [count, channels, height, width], normalised."""
        return cast("tuple[Array, Array]", self._native.draw(first, count))

    def __len__(self) -> int:
        return len(self._native)


class DLPack:
    """An array for DLPack readers, without a copy: torch.from_dlpack(triptych.DLPack(y)).

    NumPy's arrays support DLPack themselves, except those of bfloat16.
    """

    def __init__(self, array: Any) -> None:
        self.array = numpy.asarray(array)

    def __dlpack__(self, **options: Any) -> Any:
        if self.array.dtype.name == "bfloat16":
            return _triptych.bfloat16_to_dlpack(self.array)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def picture_array(picture: Any) -> Array:
    """A picture as a model of the presets sees it: f32 [channels, height, width].

    Whole numbers are divided by the largest of their kind (255, 65535), floats stay as they are. A
    picture without channels, [height, width], has one.
    """
    array = numpy.asarray(picture)
    if array.dtype.kind == "u":
        array = array / numpy.float32(numpy.iinfo(array.dtype).max)
    elif array.dtype.kind not in "fb":
        raise _triptych.BadInput(
            f"a picture is {array.dtype}; give uint8 or uint16, or floats as the network shall see them"
        )
    if array.ndim == 2:
        array = array[None]
    return numpy.ascontiguousarray(array, numpy.float32)


def _scale_of(picture: Any) -> tuple[int, int, bool]:
    """Channels, bits of a whole number, and whether values stay unchanged."""
    array = numpy.asarray(picture)
    channels = array.shape[0] if array.ndim == 3 else 1
    return channels, 8 * array.dtype.itemsize, array.dtype.kind != "u"


def _require_whole(array: Array, what: str) -> None:
    if array.dtype.kind not in "biu" and not numpy.array_equal(array, numpy.floor(array)):
        raise _triptych.BadInput(f"{what} is {array.dtype} and holds no whole numbers; give classes")


def _mask_array(mask: Any) -> Array:
    array = numpy.asarray(mask)
    if array.ndim == 3 and array.shape[0] == 1:
        array = array[0]
    _require_whole(array, "a mask")
    if array.size and (array.min() < 0 or array.max() > 255):
        raise _triptych.BadInput("a mask has values below 0 or above 255; give classes from 0 on")
    return numpy.ascontiguousarray(array, numpy.uint8)


class Arrays:
    """Pictures and masks in memory, of one size or of several.

    images: an array [count, height, width] or [count, channels, height, width], or a sequence of
    arrays without the first axis, of one type (`picture_array` says what their values are). masks:
    likewise, [height, width] each, classes from 0 on; 255 is ignored by a run with weights.
    """

    def __init__(self, images: Iterable[Any], masks: Iterable[Any]) -> None:
        given = list(images)
        conflict = _triptych.image_conflict([_scale_of(image) for image in given])
        if conflict:
            raise _triptych.BadInput(conflict)
        self.images: list[Array] = [picture_array(image) for image in given]
        self.masks: list[Array] = [_mask_array(mask) for mask in masks]
        if len(self.images) != len(self.masks):
            raise _triptych.BadInput(
                f"there are {len(self.images)} pictures and {len(self.masks)} masks"
            )
        if not self.images:
            raise _triptych.BadInput("there is no picture")

    def __len__(self) -> int:
        return len(self.images)


@typing.runtime_checkable
class Loader(typing.Protocol):
    """Batches (x, target) with a length, again and again: torch.utils.data.DataLoader is one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Batches:
    """The steps of a run out of passes over a loader.

    x becomes f32; a target f32 [batch, 1, height, width] of a binary model, of more classes i64
    [batch, height, width]. Targets hold whole classes, as masks do; -100 of several classes counts
    nowhere. A run that goes on in the middle of a pass begins it anew and leaves out
    the batches that it had.
    """

    def __init__(self, loader: Loader, classes: int) -> None:
        self.loader = loader
        self.classes = classes
        if len(loader) < 1:
            raise _triptych.BadInput("the loader has no batches")
        self._pass: Iterator[Any] = iter(())
        self._next = -1

    def __len__(self) -> int:
        return len(self.loader)

    def __call__(self, step: int) -> tuple[Array, Array]:
        place = step % len(self)
        if place == 0 or step != self._next:
            self._pass = iter(self.loader)
            for _ in range(place):
                self._take()
        x, target = self._pair(self._take(), step)
        self._next = step + 1
        return x, target

    def _take(self) -> Any:
        try:
            return next(self._pass)
        except StopIteration:
            raise _triptych.BadInput(
                f"the loader says that it has {len(self)} batches, and had fewer"
            ) from None

    def _pair(self, batch: Any, step: int) -> tuple[Array, Array]:
        if not isinstance(batch, Sequence) or len(batch) != 2:
            raise _triptych.BadInput(f"batch {step} is no pair (x, target)")
        x, target = (numpy.asarray(part) for part in batch)
        _require_whole(target, f"the target of batch {step}")
        if self.classes > 1:
            return x.astype(numpy.float32, copy=False), target.astype(numpy.int64, copy=False)
        if target.ndim == 3:
            target = target[:, None]
        return x.astype(numpy.float32, copy=False), target.astype(numpy.float32, copy=False)


def given(data: Any, validation: Any, classes: int) -> tuple[Any, Any, int]:
    """(training, validation, steps of an epoch) as the native trainer takes them."""
    if validation is not None and not isinstance(validation, Arrays):
        validation = _collect(validation)
    held_out = (validation.images, validation.masks) if validation is not None else None
    if isinstance(data, Arrays):
        return (data.images, data.masks), held_out, 0
    if isinstance(data, tuple) and len(data) == 2:
        pair = Arrays(*data)
        return (pair.images, pair.masks), held_out, 0
    if isinstance(data, Loader):
        batches = Batches(data, classes)
        return batches, held_out, len(batches)
    raise _triptych.BadInput(
        f"data is {type(data).__name__}; give (images, masks), triptych.data.Arrays, or a loader of "
        "batches (x, target) with a length, like torch.utils.data.DataLoader"
    )


def _collect(validation: Any) -> Arrays:
    """All pictures of a pass over a loader, or of a pair (images, masks)."""
    if isinstance(validation, tuple) and len(validation) == 2:
        return Arrays(*validation)
    if not isinstance(validation, Loader):
        raise _triptych.BadInput(
            f"validation is {type(validation).__name__}; give (images, masks) or a loader"
        )
    images: list[Any] = []
    masks: list[Any] = []
    for x, target in validation:
        images.extend(numpy.asarray(x))
        masks.extend(numpy.asarray(target))
    return Arrays(images, masks)
