"""The options of verbs: the value that is typed, named or shown as a command is the same one."""

import pytest

import placement as pl
from placement.cli.options import make_parser
from placement.cli.reading import read_options
from placement.core.objective import CallRules
from placement.core.verb_options import (
    CompareOptions,
    ExportOptions,
    PlaceOptions,
    ProfileOptions,
    RefineOptions,
    ResumeOptions,
    RunOptions,
    StepsOptions,
    StreamOptions,
    TrainOptions,
    command,
    made,
    options_of,
)
from placement.costs.what_if import Conditions
from tests.instances import random_problem

GIVEN = ["--placement", "p.json"]
# A verb, what its command line needs beside the options, and options that differ from the default.
CASES = [
    ("run", GIVEN, RunOptions(steps=7, warmup=0, seed=4, timeout_s=1.5)),
    ("run", GIVEN, StreamOptions(samples=9, warmup=1, seed=2, depth=5, timeout_s=20.0)),
    ("train", GIVEN, TrainOptions(steps=3, seed=1, adjust=False, placer="heft", margin=0.2)),
    ("train", GIVEN, TrainOptions(timeout_s=0.5)),
    ("place", [], PlaceOptions(placer="genetic", time_limit_s=2.5, seed=3, settings={"a": "b=c"})),
    ("place", [], PlaceOptions(placer="auto", search_on="ray")),
    ("compare", [], CompareOptions(placers=("heft",), search_on="ray://10.0.0.1:10001")),
    ("steps", [], StepsOptions(placer="etf", seed=2, settings={"a": "b"}, most=7)),
    ("compare", [], CompareOptions(placers=("heft", "peft"), time_limit_s=1.0, seed=2, live=True)),
    ("run", GIVEN, RefineOptions(refine=True)),
    ("run", GIVEN, ResumeOptions(resume=True)),
    ("profile", [], ProfileOptions(refresh=True)),
    ("profile", [], ProfileOptions(as_measured=True)),
    ("export", GIVEN, ExportOptions(format="html", out="a b.html")),
    ("export", GIVEN, ExportOptions(format="csv", out="o.csv", run="run.json")),
    ("what-if", GIVEN, Conditions({"cpu:0": 0.5, "a=b": 1234567.5}, 2.0, 0.1)),
    ("what-if", GIVEN, Conditions(memory_bytes={"cpu:0": None, "cpu:1": 2**40 + 1})),
    ("what-if", GIVEN, Conditions(link_bandwidth={("a", "b"): 0.5}, link_latency={("b", "a"): 3})),
    ("place", [], CallRules(overlap=True, gpipe=True, sync_bytes_per_ms=2.5)),
    ("simulate", GIVEN, CallRules(cluster_size=2, slow_link_factor=4.0)),
    ("profile", [], ProfileOptions()),
]


@pytest.mark.parametrize(("verb", "given", "options"), CASES)
def test_a_command_is_read_as_the_options_that_it_was_made_of(verb, given, options):
    typed = make_parser().parse_args([verb, "x.onnx", *given, *command(options)])
    assert read_options(typed, type(options)) == options


@pytest.mark.parametrize(("verb", "given", "options"), CASES)
def test_what_is_not_typed_is_as_by_default(verb, given, options):
    kind = type(options)
    required = {
        CompareOptions: ["--placers", "heft"],
        ExportOptions: ["--format", "x", "--out", "y"],
    }
    typed = make_parser().parse_args([verb, "x.onnx", *given, *required.get(kind, ())])
    found = read_options(typed, kind)
    for asked in options_of(kind):
        # A run of a pipeline takes as many samples as one of steps, on the command line.
        by_default = RunOptions.steps if asked.name == "samples" else asked.default
        assert asked.is_required or getattr(found, asked.name) == by_default, asked.name


def test_options_are_given_or_named():
    assert made(RunOptions, None, {"steps": 3}) == RunOptions(steps=3)
    assert made(RunOptions, RunOptions(seed=2), {}) == RunOptions(seed=2)
    with pytest.raises(TypeError, match=r"no option 'stepz'; there are: steps, warmup, seed"):
        made(RunOptions, None, {"stepz": 3})
    with pytest.raises(TypeError, match="'steps' into the RunOptions"):
        made(RunOptions, RunOptions(), {"steps": 3})
    problem = random_problem(0)
    asked = PlaceOptions(placer="single", seed=1)
    assert pl.place(problem, asked).placement == pl.place(problem, "single", seed=1).placement


@pytest.mark.parametrize(
    ("kind", "wrong", "match"),
    [
        (RunOptions, {"steps": 0}, "at least 1 step and 0 warm-ups, not 0 and 3"),
        (TrainOptions, {"steps": 0}, "at least 1 step, not 0"),
        (CompareOptions, {"placers": ()}, "no placer to compare"),
        (PlaceOptions, {"search_on": "moon"}, "searches on 'moon'; use local, ray, or ray://"),
    ],
)
def test_nonsense_is_refused(kind, wrong, match):
    with pytest.raises(ValueError, match=match):
        kind(**wrong)
