"""A comparison of machines from Python: the page's data, the page, stopping."""
# SPDX-License-Identifier: Apache-2.0
import signal

import numpy as np
import pytest

import triptych


def pictures(count=4, size=64, seed=0):
    """Discs on noise, and where they are."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    masks = np.array([(x - 20 - 3 * i) ** 2 + (y - 30) ** 2 < 150 for i in range(count)])
    return (rng.random((count, size, size), np.float32) * 0.3 + masks).astype(np.float32), masks


def test_comparison_is_the_pages_data(tmp_path):
    result = triptych.compare("unet-s", pictures(), backends=["cpu", "systolic"], epochs=1, batch=2,
                              steps=2, seed=3, progress=False)
    assert result.identical and list(result.losses) == ["cpu", "systolic (twin)"]
    first, second = result.machines
    assert first["weights_sha256"] == second["weights_sha256"]
    assert (first["time_kind"], second["time_kind"]) == ("measured", "modelled")
    assert "<html" in result.page() and result.machines[0]["machine"] in result.page()
    assert result._repr_html_().startswith("<iframe srcdoc=")
    result.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == result.page()
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.to_pandas(), pandas.DataFrame)


def test_comparison_of_another_version_is_refused():
    for text, problem in (("{", "not valid JSON"), ('{"command": "compare"}', "schema"),
                          ('{"schema": 99, "command": "compare"}', "schema 99.*compare again"),
                          ('{"schema": 1, "command": "train"}', "not one of triptych compare")):
        with pytest.raises(triptych.Error, match=problem):
            triptych.Comparison(text)


def test_comparison_shorter_than_an_epoch_has_no_scores():
    result = triptych.compare("unet-s", backends="cpu", epochs=1, batch=2, steps=2, progress=False)
    assert result.machines[0]["dice"] is None and len(result.losses["cpu"]) == 2


def test_what_a_callback_raises_comes_out():
    class Raise:
        def on_step(self, *_):
            raise LookupError("seen enough")

    with pytest.raises(LookupError, match="seen enough"):
        triptych.compare("unet-s", backends="cpu", epochs=50, batch=2, progress=False,
                         callbacks=[Raise()])


def test_comparison_stops_at_control_c():
    class Interrupt:
        def on_step(self, step, *_):
            if step == 2:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        triptych.compare("unet-s", backends="cpu", epochs=50, batch=2, progress=False,
                         callbacks=[Interrupt()])
