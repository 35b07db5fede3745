"""What a verb printed, decoded as the value that the verb gives."""

from typing import Any

from placement.api.results.machines import ExportResult, ProfileResult
from placement.api.results.placing import (
    CompareResult,
    PlaceResult,
    SimulateResult,
    WhatIfPlaceResult,
    WhatIfResult,
)
from placement.api.results.running import RunResult, run_from_json
from placement.api.results.training import TrainResult
from placement.api.results.value import REMEDY
from placement.core.decoding import decode, shown

Result = (
    PlaceResult
    | CompareResult
    | SimulateResult
    | WhatIfResult
    | RunResult
    | TrainResult
    | ProfileResult
    | ExportResult
)


def result_from_json(verb: str, content: Any) -> Result:
    """What a verb printed, as its value; a ValueError says what of it is wrong."""
    if verb == "run":
        return run_from_json(content)
    if verb == "what-if":
        if "placer" in content:
            return decode(content, WhatIfPlaceResult, remedy=REMEDY)
        return decode(content, WhatIfResult, remedy=REMEDY)
    kind = _KINDS.get(verb)
    if kind is None:
        raise ValueError(f"The verb {shown(verb)} gives no result that is known here.")
    found: Result = decode(content, kind, remedy=REMEDY)
    return found


_KINDS: dict[str, type[Any]] = {
    "place": PlaceResult,
    "compare": CompareResult,
    "simulate": SimulateResult,
    "train": TrainResult,
    "profile": ProfileResult,
    "export": ExportResult,
}
