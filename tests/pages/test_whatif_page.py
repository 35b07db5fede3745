"""The what-if page: sliders, what follows from them, and placements that are kept apart."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.session.current import snapshot
from pages.ui.what_if import ask_method, comparison, conditions, link_groups
from placement.core import formatting
from placement.core.formatting import percent
from placement.core.machine import Device, Link, Machine
from placement.costs.what_if import UNCHANGED, ConditionRows, Conditions
from studio import snapshot as studio
from studio import standings
from studio.jobs import outcomes
from studio.project import store
from tests.pages import problems
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, metric, texts
from tests.studio.test_standings import own_home
from tests.workloads import diamond

__all__ = ["own_home"]


def opened(**settings):
    project = store.create()
    project.change(**{"model": "onnx-squeezenet", "machine": "null-2", **settings})
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    return checked(go(app, "what_if")), project


def slider(app, label):
    return next(s for s in app.select_slider if s.label.replace("\\", "").startswith(label))


def button(app, label):
    return next(b for b in app.button if b.label.startswith(label))


def now_of(project):
    return snapshot(project)


def test_a_slider_predicts_the_changed_machine_beside_the_one_as_it_is():
    app, project = opened()
    before = metric(app, "Time per step as it is").value
    assert metric(app, "What-if time per step").value == before
    assert button(app, "Reset").disabled
    for name in ("null:0", "null:1"):
        checked(slider(app, f"Speed of {name}").set_value(0.5).run())
    checked(slider(app, "Bandwidth").set_value(0.5).run())
    assert metric(app, "Time per step as it is").value == before
    now = now_of(project)
    slow = pl.what_if(now.problem, Conditions({"null:0": 0.5, "null:1": 0.5}, 0.5))
    ratio = pl.simulate(slow, now.placement).value / now.simulated.value
    assert metric(app, "What-if time per step").delta == f"{formatting.percent(ratio - 1)} longer"
    assert "null:0, null:1 at ×0.5 speed, links at ×0.5 bandwidth" in texts(app)
    kept = store.find(project.id).settings.form
    assert next(v for k, v in kept.items() if k.startswith("what-if"))["bandwidth"] == 0.5

    checked(button(app, "Reset").click().run())
    assert metric(app, "What-if time per step").value == before
    assert slider(app, "Speed of null:0").value == 1.0
    assert button(app, "Reset").disabled


def test_no_limit_is_as_it_is_where_the_machine_has_none_any_more(monkeypatch):
    """Its slider has no stop for it then, so that the tab could not be drawn."""
    _, project = opened(machine="apple-unified")
    now = now_of(project)
    limited, free = now.stated_machine.devices
    assert limited.memory_bytes is not None and free.memory_bytes is None
    wanted = Conditions(memory_bytes={limited.name: None, free.name: None})
    monkeypatch.setattr(conditions.choices, "remembered", lambda name, default: wanted.to_json())
    assert conditions.stored(now) == Conditions(memory_bytes={limited.name: None})


def test_a_memory_limit_that_is_too_small_is_told_as_what_it_breaks():
    app, _ = opened()
    memory = slider(app, "Memory of null:0")
    assert memory.value == conditions.AS_IT_IS
    smallest = conditions.limits(None, 0, None)[0]
    assert smallest >= 1
    checked(memory.set_value(int(str(memory.options[0]).split()[0]) * 1024).run())
    assert metric(app, "Allowed there").value == "no"
    assert any("needs" in str(w.value) and "but has" in str(w.value) for w in app.warning)


def test_another_placement_that_would_be_better_there_is_named():
    app, project = opened(model="onnx-inception-v2")
    now = now_of(project)
    alone = pl.place(now.problem, "single")
    now.shelf.add("single", alone.placement, "single", studio.facts_of(alone), show=False)
    [used] = set(alone.placement.device_of.values())
    other = next(d.name for d in now.machine.devices if d.name != used)
    checked(slider(app, f"Speed of {other}").set_value(0.25).run())
    assert "**single** would be best" in texts(app)
    checked(button(app, "Show single instead").click().run())
    assert now_of(project).named.name == "single"
    assert "would not be better there than this one" in texts(app)


def test_a_workload_has_the_page_in_its_own_unit(tmp_path):
    """All four nodes are one call of 10 ms; on an accelerator of twice the speed one of 5 ms."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(diamond()))
    app, project = opened(model_kind="path", model=str(path), machine="local")
    assert metric(app, "What-if time per step").value == "10 ms"
    device = next(iter(now_of(project).placement.ops_per_device()))
    checked(slider(app, f"Speed of {device}").set_value(2.0).run())
    assert metric(app, "What-if time per step").value == "5 ms"
    assert not any(s.label.startswith("Delay") for s in app.select_slider)


def case(name, before_s, after_s, broken=()):
    return comparison.Case(name, before_s, after_s, tuple(broken))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([case("b", 1.0, 1.9999)], "The other placement would not be better there than this one."),
        ([case("b", 1.0, 1.5)], "**b** would be best: 1.5 s, 25% shorter than this one there."),
        ([case("b", 1.0, 2.5)] * 2, "None of the 2 other placements would be better there"),
        ([case("b", 1.0, 1.0, ["too big"])], "would not be better there than this one"),
        # A tie is nothing better.
        ([replace(case("b", 1.0, 1.9), range_s=(1.8, 2.1))], "would not be better there than this"),
    ],
)
def test_the_verdict_on_the_other_placements(others, said):
    shown = case("a", 1.0, 2.0)
    ranked = sorted([shown, *others], key=lambda c: (bool(c.broken), c.after_s))
    assert said in comparison.verdict(shown, ranked, "s")


def test_the_verdict_where_this_placement_is_not_allowed():
    shown, other = case("a", 1.0, 1.0, ["too big"]), case("b", 1.0, 3.0)
    assert "that are allowed there, **b** would be best: 3 s" in comparison.verdict(
        shown, [other, shown], "s"
    )
    for other_s in (0.5, 3.0):
        both = [shown, case("b", 1.0, other_s, ["too big"])]
        both.sort(key=lambda c: c.after_s)
        assert comparison.verdict(shown, both, "s").startswith("No other placement")
        assert not comparison.is_better(both[0], shown)


def test_conditions_in_words():
    assert conditions.in_words(UNCHANGED) == "as it is"
    said = conditions.in_words(
        Conditions({"a": 2.0, "b": 2.0, "c": 0.5}, 4.0, 0.1, {"a": 2**20, "b": None})
    )
    assert said == (
        "a, b at ×2 speed, c at ×0.5 speed, links at ×4 bandwidth, links with ×0.1 delay,"
        " a with 1 MiB, b without a memory limit"
    )


def test_conditions_of_single_links_in_words():
    links = {("a", "b"): 2.0, ("b", "a"): 2.0}
    said = conditions.in_words(Conditions({}, 4.0, 1.0, {}, links, {("b", "a"): 0.1}))
    assert said == (
        "other links at ×4 bandwidth, a → b, b → a at ×2 bandwidth, b → a with ×0.1 delay"
    )


def test_a_link_has_sliders_of_its_own_where_that_is_wanted():
    app, project = opened()
    labels = [s.label for s in app.select_slider]
    assert sum(label.startswith("Bandwidth") for label in labels) == 1
    menu = app.multiselect[0]
    assert menu.options == ["null:0 → null:1", "null:1 → null:0"]
    checked(menu.set_value(["null:1 → null:0"]).run())
    assert metric(app, "What-if time per step").delta == "no change"
    checked(slider(app, "Bandwidth of null:1 → null:0").set_value(0.1).run())
    checked(slider(app, "Delay of null:1 → null:0").set_value(10.0).run())
    now, back = now_of(project), ("null:1", "null:0")
    wanted = Conditions(link_bandwidth={back: 0.1}, link_latency={back: 10.0})
    slow = pl.what_if(now.problem, wanted)
    assert conditions.in_words(wanted) in texts(app)
    ratio = pl.simulate(slow, now.placement).value / now.simulated.value
    longer = f"{percent(ratio - 1.0)} longer"
    assert metric(app, "What-if time per step").delta == longer
    assert any("--link-bandwidth" in code.value for code in app.code)
    # Another session finds the same sliders; a reset takes them away.
    again = AppTest.from_file(str(APP), default_timeout=120)
    again.query_params["project"] = project.id
    again = checked(go(again, "what_if"))
    assert slider(again, "Delay of null:1 → null:0").value == 10.0
    checked(button(app, "Reset").click().run())
    assert app.multiselect[0].value == []


def test_links_of_one_kind_share_sliders():
    devices = [Device("cpu:0"), Device("gpu:0", "gpu"), Device("gpu:1", "gpu")]
    ends = [(a.name, b.name) for a in devices for b in devices if a is not b]
    machine = Machine("three", tuple(devices), tuple(Link(a, b, 0.0, 1.0) for a, b in ends))
    names = [group.name for group in link_groups.offered(machine)]
    assert names[:3] == ["every cpu → gpu", "every gpu → cpu", "every gpu → gpu"]
    assert names[3:] == [f"{a} → {b}" for a, b in ends]
    up = {("cpu:0", "gpu:0"): 2.0, ("cpu:0", "gpu:1"): 2.0}
    alike = Conditions(link_bandwidth=up)
    assert [g.name for g in link_groups.covering(machine, alike)] == ["every cpu → gpu"]
    apart = Conditions(link_bandwidth=up, link_latency={("cpu:0", "gpu:1"): 0.5})
    assert [g.name for g in link_groups.covering(machine, apart)] == names[3:5]
    assert link_groups.covering(machine, UNCHANGED) == []


def test_many_devices_share_a_slider_by_kind():
    few = [Device(f"gpu:{i}", "gpu") for i in range(3)]
    assert [g.names for g in conditions.groups(few)] == [("gpu:0",), ("gpu:1",), ("gpu:2",)]
    many = [*(Device(f"gpu:{i}", "gpu") for i in range(20)), Device("cpu:0")]
    assert [(g.label, len(g.names)) for g in conditions.groups(many)] == [
        ("gpu:0 to gpu:19", 20),
        ("cpu:0", 1),
    ]


@pytest.mark.parametrize(
    ("limit", "needed"), [(None, 0), (2**30, 5e6), (1000, 1e9), (2**20, 2**20)]
)
def test_memory_stops_grow_and_hold_what_is_needed_and_what_there_is(limit, needed):
    stops = conditions.limits(limit, needed, 12345)
    assert stops.count(conditions.AS_IT_IS) == 1 and 12345 in stops
    last = conditions.AS_IT_IS if limit is None else conditions.NO_LIMIT
    assert stops[-1] == last
    sizes = [limit if s == conditions.AS_IT_IS else s for s in stops[:-1]]
    assert sizes == sorted(sizes)
    assert sizes[0] <= max(needed, 8) <= sizes[-1]


def answered(project, placer="single"):
    """What a job for a what-if machine leaves on its own shelf."""
    now = now_of(project)
    wanted = Conditions({"null:0": 0.25})
    changed = pl.what_if(now.problem, wanted)
    placed = pl.place(changed, placer)
    shelf = outcomes.what_if_shelf(project.folder, now.shelf.folder.name)
    facts = structs.replace(
        studio.facts_of(placed),
        what_if=ConditionRows(speed=wanted.speed),
        unchanged_value=pl.simulate(now.problem, placed.placement).value,
    )
    shelf.add(f"{placer} what-if 1", placed.placement, placer, facts)
    return placed


def test_what_was_made_for_a_what_if_machine_stays_apart_until_it_is_kept(monkeypatch):
    app, project = opened()
    placed = answered(project)
    assert now_of(project).shelf.items == (now_of(project).named,)
    checked(app.run())
    assert "single what-if 1" in str(app.dataframe[-1].value)
    monkeypatch.setattr(ask_method.choices, "typed", lambda key, default: {"row": 0})
    monkeypatch.setattr(ask_method.choices, "renew_claim", lambda opened: True)
    monkeypatch.setattr(ask_method, "studio", lambda: now_of(project))
    monkeypatch.setattr(ask_method.choices, "say", lambda kind, text: None)
    ask_method.keep(["single what-if 1"])
    now = now_of(project)
    row = next(r for r in standings.standings(now) if r.name == "single what-if 1")
    assert row.notes == ("found for a what-if machine: null:0 at ×0.25 speed",)
    assert row.value_s == pl.simulate(now.problem, placed.placement).value
    assert row.measured is None and row.search_s is None
    assert now.shelf.read("single what-if 1").machine == now.machine.name
    assert now.named.name != "single what-if 1"


def test_a_device_that_is_slowed_for_less_time_is_told_and_why():
    """At the same speed it is busy for another time, because the others compute less beside it."""
    alone, faster = problems.diamond(), Conditions({"cpu:0": 2.5})
    beside = replace(alone, costs=replace(alone.costs, contention=0.4))
    placement = problems.everywhere(alone, c="cpu:1")
    for posed, is_told in ((alone, False), (beside, True)):
        changed = pl.what_if(posed, faster)
        now = SimpleNamespace(problem=posed, placement=placement, machine=posed.machine)
        before, after = (pl.simulate(p, placement).busy_s["cpu:1"] for p in (posed, changed))
        assert (after < before * 0.99) == is_told
        told = comparison.slowed_less(now, changed, faster)
        assert ("cpu:1 is busy for less time at the same speed" in told) == is_told, told
