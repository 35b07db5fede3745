"""Which lanes of a program in Python stay awake while they wait for each other."""

import pytest

from placement.core.machine import Device
from profiling.backends import base
from profiling.backends.base import Program
from profiling.devices import native
from profiling.devices.lanes import Lane, Lanes
from profiling.devices.waiting import AsleepLane, AwakeLane


class Plain(Program):
    waits_awake = True

    def run(self, segment):
        pass

    def outputs(self):
        return {}


class Asleep(Plain):
    waits_awake = False


OWN = ((0,), (1,))


@pytest.mark.parametrize(
    ("program", "core_ids", "cores", "reason", "kind"),
    [
        (Plain, OWN, 1, "", AwakeLane),
        (Plain, ((), ()), 1, "", AwakeLane),
        (Asleep, OWN, 1, "", AsleepLane),
        (Plain, ((0,), (0,)), 1, "", AsleepLane),
        (Plain, OWN, 2, "", AsleepLane),
        (Plain, ((0,),), 1, "", AsleepLane),
        (Plain, OWN, 1, "nothing is compiled here", AsleepLane),
    ],
    ids=["own", "anywhere", "told not to", "shared", "too many threads", "alone", "not compiled"],
)
def test_lanes_with_cores_of_their_own_wait_awake(
    monkeypatch, program, core_ids, cores, reason, kind
):
    made = []
    monkeypatch.setattr(native, "usable_cores", lambda: (0, 1))
    monkeypatch.setattr(base, "why_not", lambda: reason)

    class Noted(Lanes):
        def __init__(self, *args, awake, **given):
            made.append(AwakeLane if awake else AsleepLane)
            super().__init__(*args, awake=awake, **given)

    monkeypatch.setattr(base, "Lanes", Noted)
    lanes = [
        Lane(Device(str(i), cores=cores, core_ids=ids), (i,), ((0,) if i else (),))
        for i, ids in enumerate(core_ids)
    ]
    carried = program().carried(lanes, len(lanes))
    assert carried.step(20.0).ended_s and carried.close()
    assert made == [kind]
