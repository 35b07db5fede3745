"""Load: what others compute is counted apart from ourselves, waited for, and told."""

import hashlib
import subprocess
import sys
import time

import pytest

from placement.core.load import Load
from placement.core.machine import Device, Machine
from profiling.measuring.load import (
    PATIENCE,
    PATIENCE_S,
    Watch,
    await_quiet,
    cores_of,
    counters,
    patience,
    piece_s,
    together,
    watch,
)

LANES = Machine("lanes", tuple(Device(f"cpu:{i}", "cpu", core_ids=(i,)) for i in range(2)))


class Computer:
    """Counters on a clock that sleeping moves: others take a share of each core until they end."""

    def __init__(self, others=0.0, own=0.0, until_s=1e9):
        self.others, self.own, self.until_s, self.now_s = others, own, until_s, 0.0

    def sleep(self, seconds):
        self.now_s += seconds

    def clock(self):
        return self.now_s

    def read(self):
        busy_s = self.others * min(self.now_s, self.until_s) + self.own * self.now_s
        return (({0: busy_s, 1: busy_s}, 2 * self.own * self.now_s),)


def looked_at(computer, seconds=1.0, pieces=(1.0, 1.0)):
    counted = Watch((0, 1), computer.read, computer.clock, iter(pieces).__next__)
    computer.sleep(seconds)
    return counted.load()


@pytest.mark.parametrize(("others", "own"), [(0.0, 0.9), (0.3, 0.5), (1.0, 0.0)])
def test_our_own_work_is_not_that_of_others(others, own):
    load = looked_at(Computer(others, own))
    assert load.others_cores == pytest.approx(2 * others) and load.is_busy == (others > 0)


def test_what_counting_in_pieces_may_be_off_by_is_not_busy():
    assert not Load(0.1, 0.04, 2).is_busy and Load(10.0, 1.2, 2).is_busy
    assert not Load(10.0, None, 2).is_known and not Load(10.0, None, 2).is_busy


def test_a_computer_that_becomes_slower_is_noticed_whoever_computes():
    assert looked_at(Computer(), pieces=(1.0, 1.25)).slowdown == 1.25


def test_nobody_can_tell_without_counters_or_the_cores_in_question():
    assert not looked_at(type("None", (Computer,), {"read": lambda self: None})()).is_known
    few = type("Few", (Computer,), {"read": lambda self: (({0: 1.0}, 0.0),)})
    assert not looked_at(few()).is_known


def test_what_one_computer_does_for_us_does_not_hide_others_on_another():
    """Ours on the first outside the cores that are looked at, as a node may compute anywhere."""
    counted = iter([(({"a": 0.0}, 0.0), ({"b": 0.0}, 0.0)), (({"a": 0.2}, 3.0), ({"b": 0.7}, 0.1))])
    load = Watch(("a", "b"), lambda: next(counted), Computer().clock, lambda: 1.0).load()
    assert load.others_s == pytest.approx(0.6)


def test_an_actor_in_place_of_another_one_counts_anew():
    counted = iter([(({("h", 1, 0): 0.0}, 9.0),), (({("h", 2, 0): 0.9}, 0.1),)])
    load = Watch((("h", 1, 0),), lambda: next(counted), Computer().clock, lambda: 1.0).load()
    assert not load.is_known


def test_cores_are_those_of_the_lanes():
    assert cores_of(LANES) == (0, 1)
    assert watch(Machine("one", LANES.devices[1:])).cores == (1,)


@pytest.mark.parametrize(
    ("until_s", "waited_s", "num_told"), [(0.0, 0.2, 0), (1.0, 1.2, 1), (99.0, 5.0, 1)]
)
def test_others_are_waited_for_as_long_as_patience_lasts(until_s, waited_s, num_told):
    computer, told = Computer(others=0.8, until_s=until_s), []
    found = await_quiet(
        LANES,
        told.append,
        patience_s=5.0,
        read=computer.read,
        clock=computer.clock,
        sleep=computer.sleep,
    )
    assert found == pytest.approx(waited_s) and len(told) == num_told
    assert all("Waiting up to 5 s for a quiet computer" in text for text in told)


def test_patience_is_that_of_the_environment(monkeypatch):
    assert patience() == 0.0
    for text, expected in (("2.5", 2.5), ("-1", 0.0), ("soon", PATIENCE_S)):
        monkeypatch.setenv(PATIENCE, text)
        assert patience() == expected


def test_several_stretches_are_one_load():
    whole = together([Load(1.0, 0.5, 2), Load(3.0, 0.1, 2, 1.2)])
    assert whole == Load(4.0, 0.6, 2, 1.2)
    assert together([]) == Load(0.0, None, 0)


def test_the_system_counts_what_another_process_computes():
    before = counters()
    if before is None:
        assert not watch(LANES).load().is_known
        return
    spin = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = counters()
    ((busy_s, own_s),), ((busy_before_s, own_before_s),) = after, before
    others_s = sum(busy_s.values()) - sum(busy_before_s.values()) - (own_s - own_before_s)
    assert others_s > 0.2


def test_the_piece_of_work_takes_its_time():
    begun_s = time.perf_counter()
    hashlib.sha256(bytes(2**20)).digest()
    assert 0 < piece_s() < 50 * (time.perf_counter() - begun_s)


def test_busy_siblings_that_could_not_be_waited_out_are_told():
    beside = Load(1.0, 0.0, 2, beside=0.8)
    assert beside.is_busy and "80%" in beside.words and "other programs" not in beside.words
    both = Load(1.0, 1.0, 2, beside=0.8)
    assert both.words.startswith("other programs computed on 1 of 2 cores, and")
    assert together([beside, Load(1.0, 0.0, 2)]).beside == 0.8
    assert together([Load(1.0, 0.0, 2)]).beside is None
    apart = [Load(1.0, 0.0, 2, core_to_core_s=ns * 1e-9) for ns in (40, 160)]
    assert together([*apart, Load(1.0, 0.0, 2)]).core_to_core_s == pytest.approx(160e-9)
    assert together([Load(1.0, 0.0, 2)]).core_to_core_s is None
