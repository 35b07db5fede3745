"""Pins: ops that stay on their device, whoever moves the others, by hand or by a method.

They belong to a graph and its devices, so all its placements share them; each pinning is a step of
the placement on the screen that can be undone.
"""

from collections.abc import Iterable, Mapping, Sequence

from studio import snapshot
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


def return_strays(now: Studio) -> str:
    """Move pinned ops that are elsewhere to where they are held. What to tell, if anything."""
    changes = tuple((op, now.placement.device_of[op], now.pins[op]) for op in strays(now))
    if not changes:
        return ""
    back = edits.counted([op for op, _, _ in changes])
    return snapshot.do(now, edits.Edit(f"{back} back to where pinned", changes))


def _with_their_units(now: Studio, ops: Iterable[str]) -> Sequence[str]:
    return [now.model.graph.ops[i].name for i in edits.whole_units(now.problem, ops)]


def _step(now: Studio, verb: str, pins: Mapping[str, str]) -> str:
    if not pins:
        return ""
    changes = tuple((op, now.pins.get(op, ""), device) for op, device in pins.items())
    return snapshot.do(now, edits.Edit(f"{verb} {edits.counted(list(pins))}", pins=changes))
