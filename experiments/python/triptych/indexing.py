"""NumPy's basic indexing of values: x[1:, ..., None] and x[:, indices] become Slice, Reshape and Gather."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator
from types import ModuleType
from typing import Any

import numpy

_LOWEST = -(2**63)
_HELP = "use integers, slices, None, ... and at most one array of integers"


def _is_indices(key: Any) -> bool:
    return isinstance(key, (list, range)) or len(getattr(key, "shape", ())) > 0


def _is_bool(key: Any) -> bool:
    if isinstance(key, (list, range)):
        key = numpy.asarray(key)
    return isinstance(key, (bool, numpy.bool_)) or str(getattr(key, "dtype", "")) == "bool"


def _expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """One key for each axis, and each None. Full slices replace "..." and missing keys."""
    dots = [i for i, key in enumerate(keys) if key is Ellipsis]
    given = sum(key is not None and key is not Ellipsis for key in keys)
    if len(dots) > 1:
        raise IndexError("an index has one ... at most")
    if given > rank:
        raise IndexError(f"too many indices: {given} for a value of rank {rank}")
    at = dots[0] if dots else len(keys)
    return [*keys[:at], *[slice(None)] * (rank - given), *keys[at + 1 :]]


def _range_of(key: Any, size: int, axis: int) -> tuple[int, int, int]:
    """Start, end and step of Slice for an integer or a slice of Python."""
    if isinstance(key, slice):
        start, end, step = key.indices(size)
        return start, _LOWEST if step < 0 and end < 0 else end, step
    try:
        i = operator.index(key)
    except TypeError:
        raise TypeError(f"{key!r} is no index of a value; {_HELP}") from None
    if not -size <= i < size:
        raise IndexError(f"index {i} is outside axis {axis} of size {size}")
    return i % size, i % size + 1, 1


def _taken(ops: ModuleType, x: Any, keys: list[Any]) -> Any:
    """x along one array of integers, between slices."""
    if any(not isinstance(key, slice) for key in keys if not _is_indices(key)):
        raise TypeError(f"an array beside integers or None is no index of a value; {_HELP}, alone or with slices")
    axis = next(i for i, key in enumerate(keys) if _is_indices(key))
    indices = numpy.asarray(keys[axis]) if isinstance(keys[axis], (list, range)) else keys[axis]
    y = indexed(ops, x, tuple(slice(None) if i == axis else key for i, key in enumerate(keys)))
    return ops.gather(y, indices, axis=axis)


def indexed(ops: ModuleType, x: Any, key: Any) -> Any:
    """x[key] by operators of `ops`. Throws TypeError for a key that is not supported."""
    keys = _expanded(key if isinstance(key, tuple) else (key,), len(x.shape))
    if any(_is_bool(key) for key in keys):
        raise TypeError("a mask is no index of a value, whose shape is fixed; use triptych.ops.where")
    arrays = sum(_is_indices(key) for key in keys)
    if arrays > 1:
        raise TypeError(f"several arrays are no index of a value; {_HELP}, or triptych.ops.gather after a reshape")
    if arrays == 1:
        return _taken(ops, x, keys)
    shape: list[int] = []
    ranges: dict[int, tuple[int, int, int]] = {}
    for key in keys:
        if key is None:
            shape.append(1)
            continue
        axis = len(ranges)
        ranges[axis] = _range_of(key, x.shape[axis], axis)
        if isinstance(key, slice):
            shape.append(len(range(*key.indices(x.shape[axis]))))
    cut = {axis: r for axis, r in ranges.items() if r != (0, x.shape[axis], 1)}
    y = x
    if cut:
        starts, ends, steps = zip(*cut.values())
        y = ops.slice(x, starts=list(starts), ends=list(ends), axes=list(cut), steps=list(steps))
    return y if tuple(y.shape) == tuple(shape) else ops.reshape(y, shape=shape, allowzero=True)


def transposed(ops: ModuleType, x: Any) -> Any:
    """x.T: the axes in reverse."""
    return ops.transpose(x, perm=list(range(len(x.shape)))[::-1])
