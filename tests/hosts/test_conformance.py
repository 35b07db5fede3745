"""The conformance suite of runtimes, over two hosts."""

import pytest

from profiling import backends
from tests.profiling.backends import test_backends
from tests.profiling.live import diamond


@pytest.fixture
def backend(cluster):
    return backends.get("ray")


@pytest.fixture(params=["alpha", "beta"])
def compiled(request, backend, machine, tmp_path):
    return backend.compile(diamond(tmp_path), machine), f"{request.param}/cpu:0"


test_it_says_who_it_is = test_backends.test_it_says_who_it_is
test_its_devices_are_its_own = test_backends.test_its_devices_are_its_own
test_kernels_do_the_work_of_known_ops = test_backends.test_kernels_do_the_work_of_known_ops
test_segments_give_the_outputs_of_the_whole = (
    test_backends.test_segments_give_the_outputs_of_the_whole
)
test_what_computes_computes_what_onnxruntime_does = (
    test_backends.test_what_computes_computes_what_onnxruntime_does
)
test_feeds_are_seeded_and_may_be_given = test_backends.test_feeds_are_seeded_and_may_be_given
