"""One experiment on several machines, side by side."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from . import _triptych
from .data import given, merge, run_config
from .table import Table
from .train import Progress, _Listener


class Comparison:
    """The numbers and the page of a comparison, as `triptych compare --json` prints them."""

    def __init__(self, document: str) -> None:
        _triptych.check_comparison(document)
        self._text = document
        #: All of it, as docs/reference/json.md says: environment, results.
        self.document: dict[str, Any] = json.loads(document)

    @property
    def results(self) -> dict[str, Any]:
        """experiment, machines, verdict, notes, ..."""
        return cast("dict[str, Any]", self.document["results"])

    @property
    def identical(self) -> bool:
        """True when losses, weights and masks of all machines are the same to the bit."""
        return cast(bool, self.results["verdict"]["identical"])

    @property
    def machines(self) -> Table:
        """A row for each machine that ran. Times name their kind. An emulation has none."""
        return Table(_row(machine) for machine in self.results["machines"] if machine["available"])

    @property
    def losses(self) -> dict[str, list[float]]:
        """The losses of all steps by machine."""
        machines = self.results["machines"]
        return {m["name"]: m["losses"] for m in machines if m["available"]}

    def to_pandas(self) -> Any:
        """`machines` as a pandas.DataFrame."""
        return self.machines.to_pandas()

    def page(self) -> str:
        """The page, one HTML file that needs no network."""
        return cast(str, _triptych.compare_page(self._text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a new file."""
        with open(path, "x", encoding="utf-8") as file:
            file.write(self.page())

    def __repr__(self) -> str:
        verdict = "identical to the bit" if self.identical else "not identical"
        return f"<Comparison of {', '.join(self.losses)}: {verdict}>"

    def _repr_html_(self) -> str:
        page = html.escape(self.page(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="900" style="border:0"></iframe>'


def _row(machine: Mapping[str, Any]) -> dict[str, Any]:
    times = machine["times"] or {}

    def seconds(name: str) -> Any:
        return times[name]["value"] if name in times else None

    last = machine["epochs"][-1] if machine["epochs"] else {"dice": None, "iou": None}
    return {
        "machine": machine["name"],
        "contract": machine["contract"],
        "loss": machine["losses"][-1],
        "dice": last["dice"],
        "iou": last["iou"],
        "step_seconds": seconds("step"),
        "epoch_seconds": seconds("epoch"),
        "inference_seconds": seconds("inference_image"),
        "time_kind": times["epoch"]["kind"] if times else None,
        "weights_sha256": machine["weights_sha256"],
        "masks_sha256": machine["masks_sha256"],
    }


class _Progress(Progress):
    def on_machine(self, label: str) -> None:
        self._begun = None
        self.on_note(label)


class _Told(_Listener):
    def on_machine(self, label: str) -> bool | None:
        return self._tell("on_machine", label)


def compare(
    model: str | Mapping[str, Any] = "unet-s",
    data: Any = None,
    *,
    validation: Any = None,
    backends: Sequence[str] = ("cpu", "systolic"),
    contract: str = "bf16-exact",
    machine: Mapping[str, Any] | None = None,
    callbacks: Iterable[Any] = (),
    progress: bool = True,
    **changes: Any,
) -> Comparison:
    """Trains the same on each machine and compares losses, weights, masks, times, layers, energy.

    backends: "cpu", "cuda-emulated", "systolic:rtl", "cpu=f32" (a contract of its own), ... model,
    data, validation and other keywords as in `Trainer`, except loaders, which may draw other
    batches each time. The runs' folders are removed.
    """
    if isinstance(backends, str):
        backends = backends.split(",")
    config = run_config(model, changes)
    pictures: tuple[Any, Any, int] = (None, None, 0)
    if isinstance(data, (str, os.PathLike)):
        data = {"source": os.path.abspath(data)}
    if data is None or isinstance(data, Mapping):
        merge(config["data"], data or {}, "data.")
    else:
        config["data"]["source"] = "given"
        pictures = given(data, validation, config["model"]["classes"])
    options = {"contract": contract, **(machine or {})}
    bar = [_Progress()] if progress else []
    told = _Told([*bar, *callbacks])
    words = {"backends": list(backends), "contract": contract, **changes}
    call = ", ".join([repr(model), *(f"{key}={value!r}" for key, value in words.items())])
    document = _triptych.compare(
        json.dumps(config), options, ",".join(backends), *pictures[:2], told, f"triptych.compare({call})"
    )
    if not document:
        raise _triptych.BadInput("the comparison was stopped by a callback")
    return Comparison(document)
