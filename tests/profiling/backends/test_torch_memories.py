"""PyTorch programs across memories, on accelerators that only pretend: copies, waits, state."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import placement as pl
from placement.core.machine import Machine
from placement.core.verb_options import RunOptions
from profiling import backends
from profiling.backends._torch import instead, replays
from profiling.devices.local import local_machine
from profiling.execution.execute import execute
from profiling.measuring import kernels, links
from profiling.measuring.reference import baseline_s
from tests.exporters.torch_models import seeing
from tests.loaders.test_prefill_decode import SHAPE
from tests.loaders.test_torch import Net
from tests.profiling.backends.pretend import (
    Late,
    Pretend,
    everywhere,
    put_in_place,
    with_pretended,
    work_briefly,
)
from tests.profiling.backends.test_torch import lanes, run_once, schedules
from tests.thorough import either

STEPS = 3
# What comes of a value that is missing, or is not the right one.
FOUND_OUT = (TypeError, RuntimeError, AttributeError, AssertionError, IndexError)
# What is slow decides what a missing wait would let overtake it.
SPEEDS = {
    "slow copies": {"copy_s": 0.002},
    "slow computing": {"compute_s": 0.004},
    "captured": {"captures": True, "copy_s": 0.002},
}


@pytest.fixture(params=SPEEDS)
def pretended(request, monkeypatch):
    """Devices "pretend:N", each with a place of its own."""
    return put_in_place(monkeypatch, lambda name: Pretend(**SPEEDS[request.param]))


def one_speed(speed):
    """In `make test` at this speed alone; other tests try all."""
    speeds = either([speed], [*SPEEDS])
    at_speeds = pytest.mark.parametrize("pretended", speeds, indirect=True)
    return lambda test: pytest.mark.thorough(at_speeds(test))


@cache
def network(kind):
    """Captured once: where a program writes to state, it writes to its own."""
    if kind == "training":
        return seeing("adam")
    torch.manual_seed(0)
    return pl.from_torch(Net().eval(), torch.rand(2, 3, 16, 16))


def trained(program, num_segments):
    """Outputs of several steps, each from what the one before made."""
    found = []
    for number in range(STEPS):
        if number:
            program.advance()
        for segment in range(num_segments):
            program.run(segment)
        found.append(program.outputs())
    return found


def opened(kind, number):
    """Random placements over lanes and accelerators, and what they should give."""
    model = network(kind)
    machine = with_pretended(lanes(model))
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    expected = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    for schedule in schedules(model, machine, number):
        yield compiled, schedule, feeds, expected


def differences(found, expected):
    return [
        name
        for got, wanted in zip(found, expected, strict=True)
        for name in wanted
        if not np.array_equal(got[name], wanted[name])
    ]


@pytest.mark.parametrize("kind", ["inference", "training"])
def test_across_memories_like_unplaced_to_the_bit(kind, pretended):
    for compiled, schedule, feeds, expected in opened(kind, 3):
        program = compiled.open(schedule, feeds)
        found = trained(program, len(schedule.segments))
        assert list(found[0]) == list(expected[0])
        assert not differences(found, expected), schedule
        assert {s.device for s in schedule.segments} == {*program.actual_devices}
        program.close()
    assert all(place.taken for place in pretended.values()) and len(pretended) == 2


def computing_away(compiled, schedule):
    """How many segments on accelerators do more than look at what is there in another way."""
    nodes = compiled.program.nodes
    away = [s.kernels for s in schedule.segments if s.device.startswith("pretend")]
    return sum(
        any(not getattr(nodes[name].target, "is_view", False) for name in names) for names in away
    )


@pytest.mark.parametrize("kind", ["inference", "training"])
def test_replays_of_what_was_captured_are_the_steps_to_the_bit(kind, monkeypatch):
    places = put_in_place(monkeypatch, lambda name: Pretend(captures=True))
    for compiled, schedule, feeds, expected in opened(kind, 3):
        program = compiled.open(schedule, feeds)
        assert not program.lanes_note
        found = trained(program, len(schedule.segments))
        assert not differences(found, expected), schedule
        # One step as it is; in the second they are captured and replayed, in the third replayed.
        expected_calls = computing_away(compiled, schedule) * (STEPS - 1)
        assert sum(place.replayed for place in places.values()) == expected_calls > 0
        for place in places.values():
            place.replayed = 0
        assert "each in one call" in program.lanes_note
        program.close()
        assert "each in one call" in program.lanes_note


def test_what_cannot_be_captured_runs_as_it_is(monkeypatch):
    put_in_place(monkeypatch, lambda name: Pretend(captures=True))
    tried, captured = [], Pretend.captured

    def fails(place, pool, work):
        captured(place, pool, work)  # values are half made by then
        tried.append(work)

    monkeypatch.setattr(Pretend, "captured", fails)
    compiled, schedule, feeds, expected = next(opened("training", 1))
    program = compiled.open(schedule, feeds)
    assert not differences(trained(program, len(schedule.segments)), expected)
    assert len(tried) == computing_away(compiled, schedule) > 0 and not program.lanes_note


def trained_beside_each_other(number):
    """What differs in steps of a program, and of another one that began from the same state."""
    for compiled, schedule, feeds, expected in opened("training", number):
        program = compiled.open(schedule, feeds)
        for each in (program, program.beside()):
            for _ in range(2):  # captured in the second one, with the state that both began from
                run_once(each, schedule)
            yield differences(trained(each, len(schedule.segments)), expected)


def test_replays_of_one_program_leave_the_state_of_another_alone(monkeypatch):
    put_in_place(monkeypatch, lambda name: Pretend(captures=True))
    assert not any(trained_beside_each_other(3))


@pytest.mark.parametrize("left_out", ["_fill", "settle", "own_state"])
def test_whoever_leaves_values_where_they_came_is_found_out(left_out, monkeypatch):
    put_in_place(monkeypatch, lambda name: Pretend(captures=True))
    monkeypatch.setattr(replays.Replays, left_out, lambda *given: True)
    with pytest.raises(FOUND_OUT):
        assert not any(trained_beside_each_other(3))


def test_whoever_leaves_out_a_copy_is_found_out(pretended):
    compiled, schedule, feeds, expected = next(opened("training", 1))
    compiled.open(schedule, feeds)
    for name, way, number in product(list(pretended), ("taken", "given"), (1, 4)):
        pretended.clear()
        program, place = compiled.open(schedule, feeds), pretended[name]
        place.lost = (way, getattr(place, way) + number)
        with pytest.raises(FOUND_OUT):
            found = trained(program, len(schedule.segments))
            assert not differences(found, expected)


def test_whoever_does_not_wait_is_found_out(pretended, monkeypatch):
    monkeypatch.setattr(Late, "after", lambda self, mark: None)
    compiled, schedule, feeds, expected = next(opened("training", 1))
    with pytest.raises(FOUND_OUT):
        found = trained(compiled.open(schedule, feeds), len(schedule.segments))
        assert not differences(found, expected)


def test_a_live_run_tells_the_times_of_the_devices(pretended):
    """Lanes in threads; a span starts when what it reads has arrived, as the device saw it."""
    model = network("training")
    machine = with_pretended(lanes(model), 1)
    problem = pl.make_problem(model, machine)
    placement = problem.placement_of(np.arange(problem.num_units) % 3)
    schedule = pl.simulate(problem, placement).schedule
    events = []
    run = execute(
        problem,
        schedule,
        RunOptions(steps=2, warmup=1),
        model=model,
        emit=events.append,
        baselines=False,
    )
    assert run.outputs_match and run.max_abs_diff == 0
    assert run.requested_devices["pretend:0"] == "pretend"
    assert run.actual_devices["pretend:0"] == "cpu"
    spans = run.timeline.spans
    crossed = [s for s in spans if s.kind == "transfer" and "pretend:0" in s.device]
    assert crossed and all(0 <= s.start_s <= s.end_s <= run.timeline.step_s for s in crossed)
    assert sum(s.duration_s for s in crossed) > 0
    for span in spans:
        assert all(spans[i].end_s <= span.start_s + 1e-9 for i in span.after), span


@one_speed("slow computing")
def test_inputs_change_between_the_samples_of_a_pipeline(pretended):
    model = network("inference")
    machine = with_pretended(lanes(model), 1)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = [compiled.feeds(seed, {}) for seed in range(3)]
    (schedule,) = schedules(model, machine, 1)
    ring = compiled.open_ring(schedule, feeds, 2)
    for number in (0, 1, 2, 0):
        program = ring[number % 2]
        program.feed(number)
        found = run_once(program, schedule)
        whole = compiled.unplaced(machine.devices[0], feeds[number])
        whole.run(0)
        assert not differences([found], [whole.outputs()])


def test_another_placement_takes_over_the_state(pretended):
    model = network("training")
    machine = with_pretended(lanes(model))
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    whole = compiled.unplaced(machine.devices[0], feeds)
    program = None
    for schedule in schedules(model, machine, STEPS):
        before, program = program, compiled.open(schedule, feeds)
        if before is not None:
            before.advance()
            program.take_state(before.state())
            before.close()
            whole.advance()
        found = run_once(program, schedule)
        whole.run(0)
        assert not differences([found], [whole.outputs()])


@cache
def decoding():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**{**SHAPE, "num_hidden_layers": 1})
    network = transformers.LlamaForCausalLM(config).eval()
    return pl.from_transformers(network, task="decode", batch=2, length=4, context=6)


@one_speed("slow computing")
def test_a_cache_that_came_from_elsewhere_is_written_to_wherever_it_lies(pretended):
    model = decoding()
    machine = with_pretended(lanes(model))
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    empty = compiled.unplaced(machine.devices[0], feeds).state()
    torch.manual_seed(1)
    full = {name: torch.randn_like(value) for name, value in empty.items()}
    from_empty = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    whole = compiled.unplaced(machine.devices[0], feeds)
    whole.take_state({name: value.clone() for name, value in full.items()})
    from_full = trained(whole, 1)
    assert differences(from_full, from_empty)
    for schedule in schedules(model, machine, STEPS):
        program = compiled.open(schedule, feeds)
        assert not differences(trained(program, len(schedule.segments)), from_empty)
        program.take_state({name: value.clone() for name, value in full.items()})
        assert not differences(trained(program, len(schedule.segments)), from_full)
        assert not any(value.any() for value in empty.values()), "the model's own is as it was"


@one_speed("captured")
def test_the_unplaced_model_on_an_accelerator(pretended):
    model = network("training")
    machine = with_pretended(lanes(model), 1)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    there = compiled.unplaced(machine.devices[-1], feeds)
    expected = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    assert not differences(trained(there, 1), expected)
    assert pretended["pretend:0"].given > 0


@one_speed("captured")
def test_an_accelerator_that_is_too_small_says_so(pretended, monkeypatch):
    model = network("inference")
    machine = with_pretended(lanes(model), 1)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})

    def full(self, value):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(Pretend, "take", full)
    with pytest.raises(MemoryError, match="does not fit into its free memory"):
        compiled.unplaced(machine.devices[-1], feeds)
    assert baseline_s(compiled, machine.devices[-1], feeds, 60.0) is None
    assert baseline_s(compiled, machine.devices[0], feeds, 60.0) > 0


class Maker(nn.Module):
    """Makes tensors on the device that it was captured on, and names that device."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 8)

    def forward(self, word):
        where = torch.arange(word.shape[1], device=word.device)
        mask = torch.full((4, 4), float("-inf"), device=word.device).triu(1)
        seen = self.words(word) + where[None, :, None] + torch.zeros(8, dtype=torch.bfloat16)
        return torch.softmax(mask + seen @ seen.mT, -1), word > 3


def test_every_value_is_made_where_its_segment_runs():
    """Under the device "meta" nothing is computed, and mixing it with the CPU is an error."""
    model = pl.from_torch(Maker(), torch.zeros(2, 4, dtype=torch.long))
    values = everywhere(model, torch.device("meta"))
    assert {v.device.type for v in values.values()} == {"meta"}
    assert torch.bool in {v.dtype for v in values.values()}


@pytest.mark.parametrize("causal", [False, True])
def test_attention_like_the_one_of_the_cpu(causal):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, 8) for _ in range(3))
    grad, mask = torch.randn(2, 3, 5, 8), None if causal else torch.randn(2, 1, 5, 5)
    aten = torch.ops.aten
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    out, sums = forward(query, key, value, 0.0, causal, attn_mask=mask)
    found = instead.attention(query, key, value, 0.0, causal, attn_mask=mask)
    assert torch.allclose(found[0], out, atol=1e-5) and torch.allclose(found[1], sums, atol=1e-5)
    rest = (grad, query, key, value, out, sums, 0.0, causal)
    expected = backward(*rest, attn_mask=mask)
    for ours, theirs in zip(
        instead.attention_backward(*rest, attn_mask=mask), expected, strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_profile_has_the_times_of_every_device(monkeypatch):
    """Kernels one by one, copies, and the model on each device alone."""
    work_briefly(monkeypatch)
    made = Pretend(**SPEEDS["slow computing"], captures=True)
    pretended = put_in_place(monkeypatch, lambda name: made)
    monkeypatch.setattr(links, "missing_devices", lambda machine: ())
    monkeypatch.setattr(links, "SIZES", (1024, 65536))
    monkeypatch.setattr(kernels, "BUDGET_S", 0.0)
    model = network("inference")
    whole = pl.machine_for(model, local_machine(1))
    machine = with_pretended(Machine("one", whole.devices[:1]), 1)
    found = kernels.profile(model, machine)
    assert found.coverage == 1.0 and all(s > 0 for s in found.step_s)
    assert {k.src for k in found.machine.links} == {"cpu:0", "pretend:0"}
    late_s, replayed = pretended["pretend:0"].compute.delay_s, pretended["pretend:0"].replayed
    assert late_s > 0 and replayed > 0
    assert found.call_s[1] + min(row[1] for row in found.compute_s) >= late_s
