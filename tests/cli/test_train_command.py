"""The verb `train` as scripts see it."""

import json

import pytest

import placement as pl
from placement.__main__ import main
from placement.core.verb_options import PlaceOptions
from tests.instances import canonical_file

SIZES = ("--dim", "batch=1", "--dim", "length=2", "--dim", "depth=1")
SMALL = ("rnnlm:training", *SIZES, "--machine", "null-2", "--analytic")


@pytest.fixture(autouse=True, scope="module")
def captured_once():
    """On a virtual clock nothing is trained: the network stays as it was."""
    load, captured = pl.load, {}

    def loaded(source, dims=None):
        key = source, *sorted((dims or {}).items())
        if key not in captured:
            captured[key] = load(source, dims)
        return captured[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl, "load", loaded)
        yield


def test_training_on_a_virtual_clock_says_so(capsys):
    assert main(["train", *SMALL, "--placer", "heft", "--steps", "12", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["emulated"] and answer["losses"] is None and answer["steps"] == 12
    assert answer["step_s"]["median"] == pytest.approx(answer["predicted_s"])
    assert answer["moves"] == [] and answer["adjusted"]


@pytest.mark.parametrize("verb", ["run", "train"])
def test_the_placer_gets_its_settings_and_its_time(verb, capsys, monkeypatch):
    asked = []
    real = pl.place

    def place(problem, options, **named):
        asked.append(options)
        return real(problem, options, **named)

    monkeypatch.setattr(pl, "place", place)
    search = ("--placer", "local_search", "--time-limit", "0.2", "--seed", "3")
    settings = ("--set", "max_iterations=50", "--set", "max_iterations=60")
    assert main([verb, *SMALL, *search, *settings, "--steps", "2", "--json"]) == 0
    settings = {"max_iterations": "60"}
    assert asked == [
        PlaceOptions(placer="local_search", settings=settings, time_limit_s=0.2, seed=3)
    ]
    capsys.readouterr()


def test_a_setting_decides_where_a_run_puts_the_ops(capsys):
    placed = {}
    for device in ("null:0", "null:1"):
        given = ("--placer", "single", "--set", f"device={device}", "--steps", "2", "--jsonl")
        assert main(["run", *SMALL, *given]) == 0
        last = json.loads(capsys.readouterr().out.splitlines()[-1])
        placed[device] = set(last["placement"]["device_of"].values())
    assert placed == {"null:0": {"null:0"}, "null:1": {"null:1"}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--placer", "heft", "--set", "x=1"), "no setting 'x'"),
        (("--placer", "heft", "--set", "x"), "NAME=VALUE"),
        (("--placer", "auto", "--time-limit", "0"), "time limit"),
        (("--placement", "p.json", "--set", "x=1"), "for --placer"),
        (("--placement", "p.json", "--time-limit", "3"), "for --placer"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "train"])
def test_settings_that_do_not_fit_are_refused(verb, options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main([verb, *SMALL, *options])
    told = capsys.readouterr()
    assert ended.value.code == 2 and not told.out
    assert said in told.err and told.err.count("\n") == 1


def test_every_step_is_an_event(capsys):
    options = ("--placer", "single", "--steps", "3", "--no-adjust", "--jsonl")
    assert main(["train", *SMALL, *options]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [e["index"] for e in events if e["event"] == "step"] == [0, 1, 2]
    last = events[-1]
    assert last["event"] == "result" and not last["adjusted"]
    assert last["final_placement"] == last["placement"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--placer", "nosuch"), "nosuch"),
        (("--placer", "heft", "--adjust-placer", "nosuch"), "nosuch"),
        (("--placer", "heft", "--margin", "2"), "The margin is 2"),
        (("--placer", "heft", "--steps", "0"), "at least 1 step"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", *SMALL, *options])
    told = capsys.readouterr()
    assert ended.value.code == 2 and not told.out
    assert said in told.err and told.err.count("\n") == 1


def test_a_graph_without_gradients_is_refused(tmp_path, capsys):
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    with pytest.raises(SystemExit) as ended:
        main(["train", str(path), "--placer", "heft"])
    assert ended.value.code == 2 and "is for inference" in capsys.readouterr().err
