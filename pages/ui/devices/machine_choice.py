"""Choose the machine to place on, and see its devices and links."""

from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.devices import figures, load_rules, picture
from pages.ui.session import cache, choices, saving
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.machine import Device, Link, Machine, machine_from_json
from placement.core.problem import Problem
from placement.core.verb_options import ProblemOptions, option_of
from placement.costs.offload import refusal
from placement.drawing.machine_graph import machine_graph
from placement.files.input import json_value
from placement.simulator.call_costs import clusters_of
from profiling import backends
from profiling.devices.local import presets
from studio.cluster import save_hosts, silent_head
from studio.project.files import write_bytes
from studio.snapshot import Studio

# Letters of what a machine's file says of it.
MOST_NOTE = 1_500
LOCAL = "local"
# The machine file with the hosts of a cluster, in the project.
HOSTS = "ray.json"
# What estimates need of every device, in words.
NEEDED = {
    "arithmetic (FLOP per second)": "flops_per_s",
    "bandwidth of its memory (bytes per second)": "memory_bytes_per_s",
}
MOST_TOLD = 3
# More links than these are listed device by device.
MOST_LINKS = 1_000
RAILS = (
    "Processors stand above the accelerators that are closest to them. A line carries all links"
    " between the devices below and above it that are about as fast; the faster, the thicker."
)


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
    if not backends.get("ray").missing():
        which.button(
            "Take the hosts of a Ray cluster",
            on_click=_take_hosts,
            args=(now,),
            disabled=locked,
            help="The devices of all hosts of the cluster that runs here, as one machine; press it"
            " again when hosts have come or gone.",
        )
    _tell_silence(now, locked)
    with file:
        given = st.file_uploader(
            "Machine file (JSON)", type=["json"], key="machine-upload", disabled=locked
        )
    saving.upload(given, "machine", partial(_take_over, now))
    if now.model.problem is not None:
        st.info("This file carries its own machine and costs; they are used.")
    elif now.profile is None:
        if now.machine.note:
            st.caption(glossary.plain(now.machine.note, MOST_NOTE))
        if now.machine.sources:
            st.caption(f"Figures from: {', '.join(map(_link, now.machine.sources))}.")
    _offload(now, locked)
    load_rules.show(now)


def _tell_silence(now: Studio, locked: bool) -> None:
    """That the head of the cluster whose hosts were taken is gone, and what can be had instead."""
    if not backends.elsewhere(now.stated_machine.devices):
        return
    address = _silent_head()
    if not address:
        return
    st.warning(
        glossary.plain(
            f"The head of the Ray cluster does not answer at {address}, so nothing can be measured"
            " or run on its hosts until it is started again. What is predicted stays."
        ),
        icon=":material/cloud_off:",
    )
    st.button(
        "Use this computer instead",
        on_click=_leave_cluster,
        args=(now,),
        disabled=locked,
    )


def _leave_cluster(now: Studio) -> None:
    now.project.change(machine=LOCAL)


@st.cache_data(ttl=5, show_spinner=False)
def _silent_head() -> str:
    return silent_head()


def _offload(now: Studio, locked: bool) -> None:
    """Whether weights may stream, and in words what that means on this machine."""
    limited = [d for d in now.stated_machine.devices if not d.on_host and d.memory_bytes]
    if not now.settings.offload and (now.model.problem is not None or not limited):
        return
    asked, drawn = option_of(ProblemOptions, "offload"), now.settings.offload
    key = f"offload-{now.project.id}-{drawn}"
    st.toggle(
        asked.label,
        value=drawn,
        key=key,
        on_change=_set_offload,
        args=(key, drawn),
        disabled=locked,
        help=glossary.sentence(asked.help),
    )
    problem = posed(now)
    if problem is None:
        return
    streaming = [d for d in problem.machine.devices if d.streams_from]
    if streaming:
        name, engine, host = streaming[0].name, streaming[0].engine, streaming[0].streams_from
        st.caption(
            glossary.plain(
                f"{name} is {engine} with weights that stay in the memory of {host}: whatever is"
                f" placed there is computed by {engine}, one op at a time for both, once its"
                " weights have been sent. That is predicted and not run."
            )
        )
    elif drawn:
        reason = refusal(problem)
        st.caption(
            glossary.plain(f"{reason}.")
            if reason
            else "Every accelerator holds the whole model, so nothing has to stream."
        )


def _set_offload(key: str, drawn: bool) -> None:
    wanted = choices.changed(key, drawn)
    if wanted is not None and choices.may_write():
        choices.project().change(offload=wanted)


def _link(source: str) -> str:
    """A page that figures come from, by where it lies; the machine has checked the address."""
    return f"[{urlsplit(source).hostname}]({source})"


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


def drawn(now: Studio) -> None:
    """The machine as a graph, and beside it the figures of what is picked there."""
    if now.emulated:
        st.info(glossary.EMULATED, icon=":material/theater_comedy:")
    st.subheader("Devices and links", help=RAILS)
    problem = posed(now)
    if problem is None:
        st.warning(glossary.plain(_why_not_posed(now)), icon=":material/edit:")
        graph = machine_graph(now.stated_machine)
    else:
        has_links = problem.execution.uses_links
        graph = machine_graph(problem.machine, None if has_links else clusters_of(problem).tolist())
    left, right = st.columns([0.72, 0.28], gap="medium")
    with left:
        picture.draw(graph)
    with right:
        figures.show(now, graph, picture.picked(graph))


def posed(now: Studio) -> Problem | None:
    """The problem on this machine; None where the machine states too little to predict anything."""
    _ = now.model
    with suppress(ValueError):
        return now.problem
    return None


def _why_not_posed(now: Studio) -> str:
    """What each device does not state and estimates need, and what to do about it."""
    told = [
        f"{device.name}, the {' and the '.join(missing)}"
        for device in now.stated_machine.devices
        if (missing := [word for word, field in NEEDED.items() if not getattr(device, field) > 0])
    ]
    if not told:
        try:
            _ = now.problem
        except ValueError as error:
            return str(error)
    more = f" and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return (
        "Nothing can be predicted yet, because this machine leaves out figures: of"
        f" {'; of '.join(told[:MOST_TOLD])}{more}. Pick a device in the picture and type in what is"
        " missing, or measure below."
    )


def tables(now: Studio) -> None:
    """The same figures in rows."""
    problem = posed(now)
    machine = now.stated_machine if problem is None else now.machine
    st.subheader("Devices")
    st.dataframe([_device_row(now, *each) for each in enumerate(machine.devices)], hide_index=True)
    st.subheader("Links", help="How tensors get from one device to another, and how fast.")
    _links(now, problem, machine)


def _links(now: Studio, problem: Problem | None, machine: Machine) -> None:
    if problem is not None and not problem.execution.uses_links:
        st.caption(
            "This file states for each tensor how long an accelerator takes to read or write it, so"
            " there are no links; a CPU pays nothing."
        )
        return
    measured = now.profile is not None
    shown = problem.machine if problem and measured else machine
    of, has_cards = _whose_links(shown), any(link.card for link in shown.links)
    has_overhead = any(link.send_overhead or link.receive_overhead for link in shown.links)
    rows = [
        {
            "From": link.src,
            "To": link.dst,
            "Delay": formatting.seconds(link.latency_s),
            "Per second": formatting.bandwidth(link.bytes_per_s),
            **(_busy(link) if has_overhead else {}),
            **({"Network card": glossary.plain(link.card)} if has_cards else {}),
        }
        for link in shown.links
        if not of or of in (link.src, link.dst)
    ]
    if rows:
        st.dataframe(rows, hide_index=True)
        st.caption("Measured here." if measured else "Nominal figures, not measured.")
        if has_overhead:
            st.caption(
                "For these shares of a transfer's time the device that sends or receives can do"
                " nothing else."
            )
        if has_cards:
            st.caption("Links of one network card carry one tensor after the other.")
        if of:
            st.caption(
                glossary.plain(
                    f"Of all {len(shown.links)} links these are those of {of}; pick another device"
                    " in the picture to see its own."
                )
            )
    else:
        st.caption("One device alone needs no links.")


def _whose_links(machine: Machine) -> str:
    """The device whose links are listed, where all of them would be too many to read."""
    if len(machine.links) <= MOST_LINKS:
        return ""
    what = picture.picked_name()
    return what if what in machine.index else machine.devices[0].name


def _device_row(now: Studio, number: int, device: Device) -> dict[str, object]:
    runner = f"{device.runtime} {glossary.provider(device.provider)}".strip()
    row: dict[str, object] = {
        "Key": number + 1,
        "Device": device.name,
        "What it is": device.label or device.kind,
        "Cores": device.cores,
        "Memory": _memory(device),
        "Arithmetic": _arithmetic(device),
    }
    if now.profile is not None and not device.streams_from:
        step_s = now.profile.step_s[number]
        row["Whole model"] = "does not fit" if step_s is None else formatting.seconds(step_s)
    row["Runs by"] = "virtual clock" if backends.emulated((device,)) else runner
    return row


def _memory(device: Device) -> str:
    if device.streams_from:
        return f"that of {device.engine}, for weights that of {device.streams_from}"
    return (
        f"that of {device.memory}" if device.memory else formatting.num_bytes(device.memory_bytes)
    )


def _arithmetic(device: Device) -> str:
    """Operations per second, as stated for estimates, in float32 and in other types."""
    rates = [("float32", device.flops_per_s), *((r.dtype, r.flops_per_s) for r in device.rates)]
    told = (f"{formatting.flops(rate)}/s {dtype}" for dtype, rate in rates if rate)
    return ", ".join(told)


def _num_lanes(machine: Machine) -> int:
    return max(1, len(backends.cpu_lanes(machine.devices)))


def _choose(key: str, drawn: str) -> None:
    machine = choices.changed(key, drawn)
    if machine is not None and choices.may_write():
        choices.project().change(machine=machine)


def _take_hosts(now: Studio) -> None:
    try:
        with saving.change("The hosts were not taken over."):
            folder = now.project.folder / "machines"
            folder.mkdir(exist_ok=True)
            save_hosts(folder / HOSTS)
            now.project.change(machine=HOSTS)
            cache.forget_machines()
    except ValueError as error:
        choices.say("error", str(error))


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


def _busy(link: Link) -> dict[str, str]:
    """For which shares of a transfer's time its ends are held up."""
    shares = {"Sender busy": link.send_overhead, "Receiver busy": link.receive_overhead}
    return {name: formatting.percent(share) for name, share in shares.items()}
