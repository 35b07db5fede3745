"""Pins: ops that stay on their device, whoever moves the others, by hand or by a method.

They belong to a graph and its devices, so all its placements share them; each pinning is a step of
the placement on the screen that can be undone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from placement.core.problem import Execution
from placement.schedule.order import order_of_ops
from placement.schedule.reordering import in_sequence
from studio import editing
from studio.project import edits
from studio.snapshot import Studio


def strays(now: Studio) -> tuple[str, ...]:
    """Pinned ops that the placement on the screen has somewhere else."""
    device_of = now.placement.device_of
    return tuple(op for op, device in now.pins.items() if device_of[op] != device)


def pin(now: Studio, ops: Iterable[str]) -> str:
    """Hold ops, and those that move together with them, where they are. What to tell, if anything.

    An op that is pinned elsewhere is from now on held where it is.
    """
    device_of = now.placement.device_of
    wanted = {op: device_of[op] for op in _with_their_units(now, ops)}
    return _step(now, "pin", {op: d for op, d in wanted.items() if now.pins.get(op) != d})


def unpin(now: Studio, ops: Iterable[str]) -> str:
    """Let ops go. What to tell, if anything."""
    return _step(now, "unpin", {op: "" for op in _with_their_units(now, ops) if op in now.pins})


def pin_order(now: Studio, ops: Sequence[str]) -> str:
    """Hold the order of all ops on the devices that these are on. What to tell.

    Methods keep it, and so do edits by hand, for the ops that stay on the device.
    """
    if now.problem.execution is Execution.CALL:
        raise ValueError("In this file all that a device computes is one call, without an order.")
    device_of, order = now.placement.device_of, order_of_ops(now.problem, now.placement)
    named = [d.name for d in now.machine.devices if any(device_of[op] == d.name for op in ops)]
    held = {d: tuple(op for op in order if device_of[op] == d) for d in named}
    there = " and ".join(named)
    told = _order_step(now, f"pin the order on {there}", {**now.sequences, **held})
    return f"The order on {there} is pinned: methods and moves keep it. {told}".strip()


def free_order(now: Studio, devices: Collection[str]) -> str:
    """Let the order on devices go. What to tell, if anything."""
    left = {d: ops for d, ops in now.sequences.items() if d not in devices}
    return _order_step(now, f"free the order on {' and '.join(devices)}", left)


def return_orders(now: Studio) -> str:
    """Run ops in the order that is pinned again. What to tell, if anything.

    A ValueError says where orders and data contradict each other.
    """
    held = in_sequence(now.pinned_problem, now.placement)
    if held is now.placement:
        return ""
    step = edits.Edit("run as pinned", order=(now.placement.order, held.order))
    return editing.do(now, step)


def _order_step(now: Studio, label: str, sequences: edits.Sequences) -> str:
    if sequences == now.sequences:
        return ""
    return editing.do(now, edits.Edit(label, sequences=(dict(now.sequences), sequences)))


def return_strays(now: Studio) -> str:
    """Move pinned ops that are elsewhere to where they are held. What to tell, if anything."""
    changes = tuple((op, now.placement.device_of[op], now.pins[op]) for op in strays(now))
    if not changes:
        return ""
    back = edits.counted([op for op, _, _ in changes])
    return editing.do(now, edits.Edit(f"{back} back to where pinned", changes))


def _with_their_units(now: Studio, ops: Iterable[str]) -> Sequence[str]:
    return [now.model.graph.ops[i].name for i in edits.whole_units(now.problem, ops)]


def _step(now: Studio, verb: str, pins: Mapping[str, str]) -> str:
    if not pins:
        return ""
    changes = tuple((op, now.pins.get(op, ""), device) for op, device in pins.items())
    return editing.do(now, edits.Edit(f"{verb} {edits.counted(list(pins))}", pins=changes))
