"""Pictures with masks, drawn and augmented as a run of the command line does."""
# SPDX-License-Identifier: Apache-2.0
import json

from . import _triptych


def _merge(into, changes, path):
    for key, value in changes.items():
        if key not in into:
            names = ", ".join(sorted(into))
            raise _triptych.BadInput(f"a run has no {path}{key}; there are: {names}")
        if isinstance(into[key], dict) and isinstance(value, dict):
            _merge(into[key], value, f"{path}{key}.")
        else:
            into[key] = value


class Pictures:
    """The training pictures of a run.

    `model` is a preset, which gives the size and the classes. Keywords change the fields of a run's
    configuration: Pictures("unet-s", seed=1, data={"source": "FOLDER"}).
    """

    def __init__(self, model="unet-s", **changes):
        self.config = json.loads(_triptych.run_config(model))
        _merge(self.config, changes, "")
        self._native = _triptych.Pictures(json.dumps(self.config))

    def draw(self, first, count):
        """(x, target) of samples first .. first + count - 1 of the run: step s of batch size B is
        draw(s * B, B). x: f32 [count, channels, height, width], normalised."""
        return self._native.draw(first, count)

    def __len__(self):
        return len(self._native)
