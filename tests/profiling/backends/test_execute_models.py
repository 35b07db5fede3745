"""Outputs of placed models equal those of the unplaced one, for everything onnxruntime can run."""

import re
import warnings
from collections import Counter
from itertools import islice

import numpy as np
import onnx
import pytest

from placement.core.verb_options import RunOptions
from placement.loaders import load, samples
from profiling import backends
from profiling.execution.execute import execute
from profiling.measuring.outputs import compare
from tests.profiling.compositions import composition
from tests.profiling.live import problem_of, random_schedule, two_lanes
from tests.profiling.onnx_models import never_empty, shipped, sizes
from tests.thorough import either

PLACEMENTS = either(1, 2)
# Of the models in the onnx package every fortieth one, but for pooling, which compositions have,
# or all.
EVERY = either(40, 1)
COMPOSITIONS = either(12, 200)
INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
NEWEST_IR = 13  # what onnxruntime reads; the loader lowers it too

warnings.filterwarnings("ignore", module="onnx")


def plain_outputs(path, inputs):
    """What onnxruntime by itself makes of the file, as our comparison wants it."""
    import onnxruntime as ort

    from profiling.backends._ort.items import ort_value, python_outputs

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model = onnx.load(path)
    model.ir_version = min(model.ir_version, NEWEST_IR)
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [v.name for v in session.get_outputs()]
    plain = all(_known(v.type) for v in (*session.get_inputs(), *session.get_outputs()))
    if plain:
        return dict(zip(names, session.run(None, inputs), strict=True))
    feeds = {v.name: ort_value(inputs[v.name], v.type) for v in session.get_inputs()}
    return python_outputs(session, names, session.run_with_ort_values(None, feeds), feeds)


def _known(type_text):
    """Whether Python values of this type go in and out of onnxruntime's plain run."""
    words = set(re.findall(r"\w+", type_text)) - {"tensor", "seq", "optional", "map"}
    return words <= {"float", "double", "float16", "bool", "string", *INTEGERS}


def check(model, inputs, expected, name, rng):
    """Some random placements; what went wrong with the first that did."""
    machine = two_lanes()
    problem = problem_of(model, machine)
    compiled = backends.get("onnxruntime").compile(model, machine)
    for number in range(PLACEMENTS):
        schedule = random_schedule(problem, rng)
        run = execute(
            problem,
            schedule,
            RunOptions(steps=2, warmup=0),
            model=model,
            inputs=inputs,
            baselines=False,
        )
        if not run.outputs_match:
            return f"{name}: placement {number} differs by {run.max_abs_diff}"
    program = compiled.unplaced(machine.devices[0], compiled.feeds(0, inputs))
    program.run(0)
    same = compare(expected, program.outputs())
    program.close()
    return "" if same.match else f"{name}: loaded model differs from the file in {same.where}"


@pytest.mark.thorough
def test_every_model_of_the_onnx_package(tmp_path, record_property):
    """Runs what onnxruntime runs; says how many ran, were skipped, and why."""
    counts: Counter[str] = Counter()
    wrong = []
    rng = np.random.default_rng(0)
    for case in islice(shipped(tmp_path, pooled=EVERY == 1), 0, None, EVERY):
        inputs = never_empty(case.path, case.inputs)
        try:
            expected = plain_outputs(case.path, inputs)
        except Exception as error:
            counts[f"skipped, onnxruntime itself cannot run it: {reason(error)}"] += 1
            continue
        try:
            model = load(str(case.path), sizes(case.path, inputs))
            compiled = backends.get("onnxruntime").compile(model, two_lanes())
            if compiled.random_ops:
                counts["skipped, random by definition"] += 1
                continue
            found = check(model, inputs, expected, case.name, rng)
        except Exception as error:
            found = f"{case.name}: {type(error).__name__} {error}"
        counts["run"] += 1
        wrong += [found] if found else []
    record_property("said", f"onnx package, {PLACEMENTS} placements each, {len(wrong)} mismatches:")
    for what, count in counts.most_common():
        record_property("said", f"    {count} {what}")
    assert not wrong, "\n".join(wrong)
    assert counts["run"] > 1_500 // EVERY


def reason(error):
    text = str(error)
    known = {
        "not guaranteed": "opset newer than it knows",
        "*guarantees*": "opset newer than it knows",
        "is not a registered function/op": "unknown op",
        "NOT_IMPLEMENTED": "no kernel",
        "INVALID_GRAPH": "refuses the graph",
    }
    return next((why for mark, why in known.items() if mark in text), "fails")


@pytest.mark.thorough
def test_random_compositions(tmp_path, record_property):
    wrong = []
    sizes_seen = []
    path = tmp_path / "composition.onnx"
    for seed in range(COMPOSITIONS):
        proto, inputs = composition(seed)
        onnx.save(proto, path)
        sizes_seen.append(len(proto.graph.node))
        found = check(
            load(str(path)), inputs, plain_outputs(path, inputs), seed, np.random.default_rng(seed)
        )
        wrong += [found] if found else []
    record_property(
        "said",
        f"{COMPOSITIONS} compositions of {min(sizes_seen)} to {max(sizes_seen)} ops:"
        f" {len(wrong)} mismatches",
    )
    assert not wrong, "\n".join(map(str, wrong))


# Among them every kind of op but sums and products by channel, which compositions have.
FEW = ["onnx-inception-v1", "onnx-shufflenet", "onnx-squeezenet"]
SAMPLES = [s.name for s in samples() if s.name.startswith("onnx-")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(FEW, SAMPLES))
def test_samples(name):
    model = load(name)
    problem = problem_of(model, two_lanes())
    rng = np.random.default_rng(0)
    for _ in range(PLACEMENTS):
        schedule = random_schedule(problem, rng)
        run = execute(
            problem, schedule, RunOptions(steps=1, warmup=0), model=model, baselines=False
        )
        assert run.outputs_match, f"{name} differs by {run.max_abs_diff}"
        assert run.max_abs_diff == 0.0, f"{name} is not bit-equal on CPU lanes"
        assert set(run.actual_devices.values()) == {"CPUExecutionProvider"}
        assert not run.fallbacks
