"""Text generated live on two lanes is what transformers generates."""

import functools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import placement as pl
from benchmarks.language.generation import reference
from placement.api.machines import machine_for
from placement.formats.huggingface import module
from profiling.execution import generate as live
from profiling.execution.execute import compiled_for
from profiling.measuring import reference as reference_of
from tests.loaders.test_prefill_decode import FAMILIES, SHAPE
from tests.thorough import either


def network():
    config = transformers.LlamaConfig(**SHAPE)
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def llama():
    return network()


BATCH, LENGTH, NEW = 2, 7, 5
STEP = {"batch": BATCH, "length": LENGTH, "context": LENGTH + NEW}


@pytest.fixture(scope="module", autouse=True)
def captured_once():
    """A step of the same network and sizes is captured for the first test that wants it: models
    stay as they are, and most of a test would be this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "from_transformers", functools.cache(module.from_transformers))
        yield


def expected(network, prompts, number):
    return reference(network, prompts, number)[0]


def test_two_lanes_generate_what_transformers_does(llama):
    prompts = np.random.default_rng(1).integers(0, 97, (BATCH, LENGTH))
    made = pl.generate(llama, prompts, new_tokens=NEW, machine=pl.machine("two-lanes"))
    np.testing.assert_array_equal(made.tokens, expected(llama, prompts, NEW))
    assert len(made.step_s) == NEW - 1 and made.first_token_s > 0
    assert made.tokens_per_s == pytest.approx(2 / np.median(made.step_s))
    assert made.decode.tokens_per_s > 0 and made.prefill.first_token_s > 0
    assert not llama.training and "cache" not in dict(llama.named_modules())


# Layers of a window, of latents, of recurrent states, and of both kinds by turns.
OTHERS = {
    "mistral": {"sliding_window": 3, "num_hidden_layers": 1},
    # The first of a window, the second of all there is.
    "gemma2": {"head_dim": 8, "sliding_window": 3},
    "deepseek_v2": FAMILIES["deepseek_v2"],
    "mamba2": FAMILIES["mamba2"],
    "jamba": {
        "mamba_d_state": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
    },
}


# A window beside all there is, and recurrent states. Of latents transformers itself keeps keys and
# values, whose bytes are in test_prefill_decode.py.
TAKEN = either(["gemma2", "mamba2"], [*OTHERS])


@pytest.mark.thorough
@pytest.mark.parametrize("family", TAKEN)
def test_layers_of_other_kinds_keep_what_they_need(family):
    config = transformers.AutoConfig.for_model(family, **{**SHAPE, **OTHERS[family]})
    torch.manual_seed(0)
    other = transformers.AutoModelForCausalLM.from_config(config).eval()
    # Longer than the window; recurrent layers take word by word. One prompt, as is usual: of a
    # batch of one other ops are captured than of two.
    prompts = np.random.default_rng(1).integers(0, 97, (1, 4))
    made = pl.generate(
        other, prompts, new_tokens=4, machine=pl.machine("two-lanes"), placer="round_robin"
    )
    np.testing.assert_array_equal(made.tokens, expected(other, prompts, 4))


def test_caches_stay_where_they_are_between_the_two_steps(llama):
    prompts = np.random.default_rng(2).integers(0, 97, (BATCH, LENGTH))
    made = pl.generate(
        llama, prompts, new_tokens=NEW, machine=pl.machine("two-lanes"), placer="round_robin"
    )
    first, later = made.placements
    models = [module.from_transformers(llama, task=task, **STEP) for task in ("prefill", "decode")]
    where = [
        {
            op.colocation_group: placement.device_of[op.name]
            for op in model.graph.ops
            if op.colocation_group
        }
        for model, placement in zip(models, (first, later), strict=True)
    ]
    assert where[0] == where[1] and len(set(where[0].values())) == 2
    np.testing.assert_array_equal(made.tokens, expected(llama, prompts, NEW))


@pytest.mark.parametrize("prompts", [[1, 2], [[0.5]], [[]]])
def test_prompts_that_are_none_are_refused(llama, prompts):
    with pytest.raises(ValueError, match="as many for each sequence"):
        pl.generate(llama, prompts)


def step_of(network, task):
    """A step of a network on two lanes."""
    model = module.from_transformers(network, task=task, **STEP)
    problem = pl.make_problem(model, machine_for(model, pl.machine("two-lanes")))
    return live.Placed(model, problem, pl.place(problem, "round_robin").schedule)


@pytest.fixture(scope="module")
def placed(llama):
    return step_of(llama, "prefill"), step_of(llama, "decode")


PROMPTS = np.random.default_rng(3).integers(0, 97, (BATCH, LENGTH))


def test_the_time_to_the_first_token_is_that_of_a_prefill_that_ran_before(placed, monkeypatch):
    ran = []

    def safe_step(lanes, program, timeout_s):
        ran.append(reference_of.safe_step(lanes, program, timeout_s))
        return ran[-1]

    monkeypatch.setattr(live, "safe_step", safe_step)
    made = live.generate(*placed, PROMPTS, new_tokens=3, timeout_s=60)
    assert len(ran) == live.WARMUP + 3
    assert made.first_s == ran[live.WARMUP].seconds
    assert made.step_s == tuple(step.seconds for step in ran[live.WARMUP + 1 :])


@pytest.mark.parametrize("step", [0, 1])
def test_nothing_stays_open_where_threads_cannot_begin(placed, monkeypatch, step):
    """The thread of the second lane of prefill, or of decode, is refused."""
    opened, closed, begun = [], [], []
    start = threading.Thread.start

    def refused(thread):
        if thread.name.startswith("cpu:"):
            if len(begun) == 2 * step + 1:
                raise RuntimeError("can't start new thread")
            begun.append(thread)
        start(thread)

    def watched(problem, model):
        compiled = compiled_for(problem, model)

        def opening(*given):
            program = compiled.open(*given)
            opened.append(program)
            close = program.close
            program.close = lambda: closed.append(program) or close()
            return program

        return SimpleNamespace(feeds=compiled.feeds, open=opening)

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(live, "compiled_for", watched)
    with pytest.raises(RuntimeError, match="new thread"):
        live.generate(*placed, PROMPTS, new_tokens=3, timeout_s=60)
    assert opened == closed and len(opened) == step + 1
    for thread in begun:
        thread.join(5.0)
    assert not any(thread.is_alive() for thread in begun)


def test_decode_writes_into_the_cache_that_prefill_left(placed, monkeypatch):
    """No step makes another cache: what it leaves lies where it lay before."""
    where = []
    plain = live._Open.step

    def step(opened, inputs, **more):
        seconds = plain(opened, inputs, **more)
        where.append({label: value.data_ptr() for label, value in opened.cache().items()})
        return seconds

    monkeypatch.setattr(live._Open, "step", step)
    live.generate(*placed, PROMPTS, new_tokens=5, timeout_s=60)
    assert len(where) == 5 and len(set(where[0].values())) == 4
    assert all(each == where[0] for each in where)


def test_a_decode_that_is_repeated_starts_from_the_same_cache(llama):
    """Where nothing goes on from a step, what the model itself holds is not written to."""
    decode = step_of(llama, "decode")
    compiled = compiled_for(decode.problem, decode.model)
    program = compiled.open(decode.schedule, compiled.feeds(0, {}))
    for _ in range(2):
        for i in range(len(decode.schedule.segments)):
            program.run(i)
    content = decode.model.content()
    assert not any(content.state[place].any() for place in content.caches)
    assert any(program.value(made).any() for place, made in content.updates)
    program.close()
