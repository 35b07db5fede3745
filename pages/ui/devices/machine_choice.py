"""Choose the machine to place on, and see its devices and links."""

from functools import partial

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import cache, choices, saving
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.machine import Machine, machine_from_json
from placement.files.input import json_value
from profiling import backends
from profiling.devices.local import presets
from studio.project.files import write_bytes
from studio.snapshot import Studio

LOCAL = "local"


def chooser(now: Studio) -> None:
    """This computer and its lanes, a preset, or a machine file."""
    locked = not choices.may_write() or now.model.problem is not None
    options = [LOCAL, *_by_one_runtime(now), *presets()]
    if now.settings.machine not in options:
        options.append(now.settings.machine)
    # The keys follow project and choice, so that the menus show what an upload or a switch sets.
    key = f"machine-{now.project.id}-{now.settings.machine}"
    which, lanes, file = st.columns([0.4, 0.25, 0.35])
    which.selectbox(
        "Machine",
        options,
        index=options.index(now.settings.machine),
        format_func=_heading,
        key=key,
        on_change=_choose,
        args=(key, now.settings.machine),
        disabled=locked,
        help="Presets describe machines that need not be here; their times are estimates.",
    )
    if now.settings.machine == LOCAL:
        drawn = now.settings.lanes or _num_lanes(now.machine)
        key = f"lanes-{now.project.id}-{drawn}"
        lanes.number_input(
            "Lanes of the CPU",
            min_value=1,
            max_value=1024,
            value=drawn,
            key=key,
            on_change=_split,
            args=(key, drawn),
            disabled=locked,
            help=glossary.LANE,
        )
        lanes.button("Detect again", on_click=cache.forget_machines, disabled=locked)
    with file:
        given = st.file_uploader(
            "Machine file (JSON)", type=["json"], key="machine-upload", disabled=locked
        )
    saving.upload(given, "machine", partial(_take_over, now))
    if now.model.problem is not None:
        st.info("This file carries its own machine and costs; they are used.")
    elif now.machine.note and now.profile is None:
        st.caption(glossary.plain(now.machine.note))


def _by_one_runtime(now: Studio) -> list[str]:
    """This computer with the devices of one runtime alone, where several run the model."""
    program = now.model.executable
    able = backends.running(program.format) if program is not None else ()
    usable = [backend.name for backend in able if not backend.emulated and not backend.missing()]
    return [f"{LOCAL}:{name}" for name in usable] if len(usable) > 1 else []


def _heading(machine: str) -> str:
    local, colon, runtime = machine.partition(":")
    if local != LOCAL:
        return machine
    return f"This computer, {runtime} alone" if colon else "This computer"


def tables(now: Studio) -> None:
    machine = now.machine
    if now.emulated:
        st.info(glossary.EMULATED, icon=":material/theater_comedy:")
    st.subheader("Devices")
    st.dataframe([_device_row(now, i) for i in range(len(machine.devices))], hide_index=True)
    st.subheader("Links", help="How tensors get from one device to another, and how fast.")
    _links(now)


def _links(now: Studio) -> None:
    if not now.problem.execution.uses_links:
        st.caption(
            "This file states for each tensor how long an accelerator takes to read or write it, so"
            " there are no links; a CPU pays nothing."
        )
        return
    measured = now.profile is not None
    rows = [
        {
            "From": link.src,
            "To": link.dst,
            "Delay": formatting.seconds(link.latency_s),
            "Per second": formatting.num_bytes(link.bytes_per_s),
        }
        for link in (now.problem.machine if measured else now.machine).links
    ]
    if rows:
        st.dataframe(rows, hide_index=True)
        st.caption("Measured here." if measured else "Nominal figures, not measured.")
    else:
        st.caption("One device alone needs no links.")


def _device_row(now: Studio, number: int) -> dict[str, object]:
    device = now.machine.devices[number]
    runner = f"{device.runtime} {glossary.provider(device.provider)}".strip()
    row: dict[str, object] = {
        "Key": number + 1,
        "Device": device.name,
        "What it is": device.label or device.kind,
        "Cores": device.cores,
        "Memory": formatting.num_bytes(device.memory_bytes),
    }
    if now.profile is not None:
        step_s = now.profile.step_s[number]
        row["Whole model"] = "does not fit" if step_s is None else formatting.seconds(step_s)
    row["Runs by"] = "virtual clock" if backends.emulated((device,)) else runner
    return row


def _num_lanes(machine: Machine) -> int:
    return max(1, len(backends.cpu_lanes(machine.devices)))


def _choose(key: str, drawn: str) -> None:
    machine = choices.changed(key, drawn)
    if machine is not None and choices.may_write():
        choices.project().change(machine=machine)


def _split(key: str, drawn: int) -> None:
    number = choices.changed(key, drawn)
    if number is None:
        return
    try:
        cache.machine(LOCAL, number)
    except ValueError as error:
        choices.say("error", str(error))
        choices.put(key, drawn)
        return
    if choices.may_write():
        choices.project().change(lanes=number)


def _take_over(now: Studio, upload: UploadedFile) -> None:
    try:
        with saving.change(f"{upload.name} was not taken over."):
            machine_from_json(json_value(upload.getvalue()))
            name = now.project.keep_upload(upload.name, upload.getvalue(), folder="incoming")
            incoming = now.project.folder / "incoming" / name
            cache.machine(str(incoming), None)
            write_bytes(now.project.folder / "machines" / name, upload.getvalue())
            now.project.change(machine=name)
    except ValueError as error:
        choices.say("error", f"{upload.name}: {error}")
