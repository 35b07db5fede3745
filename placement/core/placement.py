"""A placement: which device every source op runs on, and nothing about time."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from placement.core.decoding import decode, shown
from placement.core.graph import Graph

# Of calls of one device, and of copies of its part.
MAX_COUNT = 1_000_000


@dataclass(frozen=True)
class Placement:
    """Device names by op name, for one graph (by fingerprint) and machine (by name).

    `order` lists source ops where a method decides the order of execution too; empty leaves it to
    the default (falling upward rank; segments of one device alone run in the model's own order).
    `calls` gives the number of subgraph calls per device and `replicas` the copies of a device's
    part, where a method decides them.
    """

    graph: str
    machine: str
    device_of: Mapping[str, str]
    order: tuple[str, ...] = ()
    calls: Mapping[str, int] | None = None
    replicas: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_of", MappingProxyType(dict(self.device_of)))
        for key in ("calls", "replicas"):
            if not all(0 < n <= MAX_COUNT for n in (getattr(self, key) or {}).values()):
                raise ValueError(
                    f"The placement's {key} are not counts by device, 1 to {MAX_COUNT}; correct"
                    " them."
                )

    def require_graph(self, graph: Graph) -> None:
        """ValueError unless this placement gives a device to every op of `graph` and no other."""
        if self.graph and not graph.is_known_as(self.graph):
            raise ValueError(
                f"The placement was made for another graph ({shown(self.graph)}, this one is"
                f" {graph.fingerprint}); place this model anew."
            )
        if self.device_of.keys() == graph.index.keys():
            return
        missing = next((op.name for op in graph.ops if op.name not in self.device_of), None)
        if missing is not None:
            raise ValueError(f"The placement gives op {shown(missing)} no device; add it.")
        unknown = next((name for name in self.device_of if name not in graph.index), None)
        if unknown is not None:
            raise ValueError(
                f"The placement names op {shown(unknown)}, which this graph does not have."
            )

    def ops_per_device(self) -> dict[str, int]:
        """Number of source ops by device, in order of first use."""
        return dict(Counter(self.device_of.values()))

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "graph": self.graph,
            "machine": self.machine,
            "device_of": dict(self.device_of),
        }
        if self.order:
            content["order"] = list(self.order)
        if self.calls is not None:
            content["calls"] = dict(self.calls)
        if self.replicas is not None:
            content["replicas"] = dict(self.replicas)
        return content


def placement_to_text(placement: Placement) -> str:
    """JSON with one op per line; an indent would take the slow encoder of the standard library."""
    return json.dumps(placement.to_json(), separators=(",\n", ": ")) + "\n"


def placement_from_json(content: Any) -> Placement:
    """A placement from its JSON object; a ValueError says which field is wrong."""
    if not isinstance(content, dict) or not isinstance(content.get("device_of"), dict):
        raise ValueError('A placement file needs {"device_of": {op: device}}; this file has none.')
    for op, device in content["device_of"].items():
        if not isinstance(device, str):
            raise ValueError(
                f"The placement gives op {shown(op)} the device {shown(device)}; use a device name."
            )
    order = content.get("order") or ()
    said = {"graph": "", "machine": "", **content, "order": order}
    return decode(said, Placement, only_known=True)
