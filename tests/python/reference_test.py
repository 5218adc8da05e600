"""The reference page is that of this module; every public name has words."""
# SPDX-License-Identifier: Apache-2.0
import inspect
import pathlib
import sys

import pytest

import triptych

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import reference_page  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/python.md"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions print types otherwise")
def test_page_is_made_from_the_module():
    assert PAGE.read_text() == reference_page.page(), f"run the command in {reference_page.__file__}"


def test_every_public_name_has_words():
    for name in triptych.__all__:
        thing = getattr(triptych, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and callable(value):
                    assert inspect.getdoc(value), f"{name}.{member}"
