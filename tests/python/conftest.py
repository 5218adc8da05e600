"""Machines and numbers that the tests share."""
# SPDX-License-Identifier: Apache-2.0
import signal

import numpy
import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores Ctrl-C

BACKENDS = ("cpu", "cuda-emulated", "systolic")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def rng():
    return numpy.random.default_rng(7)
