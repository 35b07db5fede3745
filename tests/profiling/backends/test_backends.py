"""Every backend of the folder does what `profiling.backends.base` says."""

import itertools

import numpy as np
import onnxruntime
import pytest

from placement.core.machine import Machine
from placement.core.schedule import Schedule, Segment
from profiling import backends
from tests.profiling.live import diamond_for

# tests/hosts has a cluster for what runs elsewhere.
HERE = [name for name in backends.names() if not backends.get(name).elsewhere]


@pytest.fixture(params=HERE)
def backend(request):
    found = backends.get(request.param)
    if found.missing():
        pytest.skip(found.missing())
    return found


@pytest.fixture
def compiled(backend, tmp_path):
    machine = Machine("one", backend.devices()[:1])
    model = diamond_for(backend, tmp_path)
    return backend.compile(model, machine), machine.devices[0].name


def test_it_says_who_it_is(backend):
    assert backend.name in backends.names()
    assert backends.get(backend.name) is backend
    assert all(len(pair) == 2 for pair in backend.libraries())


def test_its_devices_are_its_own(backend):
    devices = backend.devices()
    assert devices and {d.runtime for d in devices} == {backend.name}
    assert len({d.name for d in devices}) == len(devices)


def test_kernels_do_the_work_of_known_ops(compiled, backend, tmp_path):
    graph = diamond_for(backend, tmp_path).graph
    found, _ = compiled
    assert len(found.sources) == len(found.kernels.ops) > 0
    named = [name for names in found.sources for name in names]
    assert set(named) == set(graph.index), "each op is in a kernel"
    assert {t.name for t in found.kernels.inputs} == {"x"}
    assert {t.name for t in found.kernels.outputs} == {t.name for t in graph.outputs}
    assert len(graph.outputs) == 1


@pytest.mark.parametrize("cuts", [1, 2, 100])
def test_segments_give_the_outputs_of_the_whole(compiled, cuts):
    found, device = compiled
    names = [op.name for op in found.kernels.ops]
    number = min(cuts, len(names))
    bounds = [len(names) * i // number for i in range(number + 1)]
    parts = [tuple(names[a:b]) for a, b in itertools.pairwise(bounds)]
    schedule = Schedule(tuple(Segment(device, part) for part in parts))
    feeds = found.feeds(0, {})
    program, whole = found.open(schedule, feeds), found.unplaced(None, feeds)
    for _ in range(3):
        for i in range(number):
            program.run(i)
    whole.run(0)
    for name, value in whole.outputs().items():
        np.testing.assert_array_equal(program.outputs()[name], value)
        np.testing.assert_array_equal(program.views()[name], value)
    assert set(program.actual_devices) == {device}
    assert program.fallbacks == ()
    program.stop()
    program.close()
    whole.close()


def test_outputs_stay_as_they_were_handed_out(backend, compiled):
    """However the program goes on; only views of them may lie where it writes next."""
    found, device = compiled
    schedule = Schedule((Segment(device, tuple(op.name for op in found.kernels.ops)),))
    feeds = found.feeds(0, {})
    others = {name: value + 1 for name, value in feeds.items()}
    (program,) = found.open_ring(schedule, (feeds, others), 1)
    program.run(0)
    handed_out, views = program.outputs(), program.views()
    before = {name: value.copy() for name, value in views.items()}
    program.feed(1)
    program.run(0)
    after = program.views()
    for name, value in before.items():
        np.testing.assert_array_equal(handed_out[name], value)
        np.testing.assert_array_equal(program.outputs()[name], after[name])
        assert backend.emulated or not np.array_equal(after[name], value), "of other inputs"
    program.close()


def test_what_computes_computes_what_onnxruntime_does(backend, compiled, tmp_path):
    """By a program of its own: a backend's unplaced run may be as wrong as its segments."""
    found, _ = compiled
    path = next(tmp_path.glob("*.onnx"), None)
    if backend.emulated or path is None:
        return
    feeds = found.feeds(0, {})
    whole = found.unplaced(None, feeds)
    whole.run(0)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    for name, value in zip(names, session.run(names, feeds), strict=True):
        np.testing.assert_allclose(whole.outputs()[name], value, rtol=1e-4, atol=1e-5)
    whole.close()


def test_feeds_are_seeded_and_may_be_given(compiled):
    found, _ = compiled
    first, same, other = (found.feeds(seed, {})["x"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    given = np.full((4, 8), 0.5, dtype=np.float32)
    np.testing.assert_array_equal(found.feeds(0, {"x": given})["x"], given)


def test_an_unknown_backend_is_refused():
    known = ", ".join(backends.names())
    with pytest.raises(ValueError, match=f"no backend 'abacus'; use one of {known}"):
        backends.get("abacus")
