"""Machines and numbers that the tests share."""
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

BACKENDS = ("cpu", "cuda-emulated", "systolic")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def rng():
    return numpy.random.default_rng(7)
