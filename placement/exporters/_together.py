"""Devices that another runtime does not tell apart, in a sentence."""

from collections.abc import Mapping


def said_together(name_of: Mapping[str, str], runtime: str) -> str:
    """What becomes one device there; empty where each stays its own.

    `name_of` leads from devices that the placement uses to what the runtime calls them.
    """
    groups: dict[str, list[str]] = {}
    for device, name in name_of.items():
        groups.setdefault(name, []).append(device)
    joined = [(name, devices) for name, devices in groups.items() if len(devices) > 1]
    said = [f"{' and '.join(devices)} are one device, {name}" for name, devices in joined]
    if not said:
        return ""
    return f"For {runtime} {'; '.join(said)}: the file does not tell apart what runs on which."
