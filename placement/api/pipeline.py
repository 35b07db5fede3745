"""The verbs: what the command line, the pages and a notebook can ask for.

This module joins the two wings, `placement` (decides and predicts) and `profiling` (touches the
machine). Each heavy part is imported by the verb that needs it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.api.compare import compare
from placement.api.place import Placed, hints, place
from placement.api.run import require_present, run, stream
from placement.api.train import train
from placement.core.events import Emit, silent, waiting
from placement.core.files import NotWritten
from placement.core.model import ContentElsewhereError
from placement.costs.what_if import Conditions, what_if
from placement.remote.calls import in_confinement
from placement.schedule.simulated import Simulated, simulate, simulate_schedule

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.profile import Profile
    from placement.core.timeline import Timeline
    from placement.drawing.paint import View

_log = logging.getLogger(__name__)

__all__ = [
    "Conditions",
    "Emit",
    "Placed",
    "Simulated",
    "can_measure",
    "compare",
    "export",
    "from_torch",
    "hints",
    "inspect",
    "list_exporters",
    "list_placers",
    "load",
    "machine",
    "machine_for",
    "make_problem",
    "place",
    "profile",
    "run",
    "samples",
    "silent",
    "simulate",
    "simulate_schedule",
    "stored_profile",
    "stream",
    "train",
    "what_if",
]


def samples() -> list[dict[str, Any]]:
    """The bundled models: name, number of ops and where they come from."""
    from placement import loaders

    return [dataclasses.asdict(sample) for sample in loaders.samples()]


def load(source: str, dims: Mapping[str, int] | None = None) -> Model:
    """The model in a file, or the bundled sample of that name.

    `dims` sets symbolic dimensions ("batch": 4). A ValueError says in one sentence what is wrong.
    A file is read by a confined process; all that comes back is what can be checked here.
    """
    from placement import loaders
    from profiling.sandbox import confinement

    sizes = dict(dims or {})
    if loaders.is_sample(source):
        return loaders.load(source, sizes)
    if not confinement.is_confined():
        from placement.remote import calls

        loaders.require_file(source)
        return calls.open_model(source, sizes)
    model = loaders.load(source, sizes)
    graph = model.graph
    confinement.file_is_read(graph.param_bytes + sum(t.num_bytes for t in graph.tensors))
    return model


def from_torch(
    module: Any,
    example_inputs: Any,
    *,
    training: bool = False,
    loss: Callable[..., Any] | None = None,
    targets: Sequence[Any] = (),
    optimizer: str = "sgd",
    lr: float | None = None,
    name: str = "",
) -> Model:
    """The model of a torch.nn.Module, as a loader would return it.

    `example_inputs` is one tensor or a sequence of them. For inference the module is exported in
    evaluation mode. For training the graph is one step: `loss(module(*example_inputs), *targets)`,
    all gradients, and one update per parameter by "sgd", "momentum" or "adam"; without a loss the
    module's output must be or have one.
    """
    from placement.formats.torch.module import model_of

    return model_of(
        module,
        example_inputs,
        training=training,
        loss=loss,
        targets=targets,
        optimizer=optimizer,
        lr=lr,
        name=name,
    )


def inspect(model: Model) -> dict[str, Any]:
    """A model's counts, sizes, inputs and outputs."""
    graph = model.graph

    def ends(tensors: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {"name": t.name, "shape": None if t.shape is None else list(t.shape), "dtype": t.dtype}
            for t in tensors
        ]

    return {
        "name": graph.name,
        "num_ops": len(graph.ops),
        "num_tensors": len(graph.tensors),
        "param_bytes": graph.param_bytes,
        "flops": graph.flops,
        "inputs": ends(graph.inputs),
        "outputs": ends(graph.outputs),
        "fingerprint": graph.fingerprint,
        "notes": list(model.notes),
    }


def machine(spec: str = "local", lanes: int | None = None) -> Machine:
    """This computer ("local", its CPU split into `lanes`), a preset by name, or a machine file."""
    from profiling.devices.local import load_machine, local_machine

    if lanes is not None:
        if spec != "local":
            raise ValueError(
                f"Lanes split this computer's CPU; machine {spec!r} has its own devices."
            )
        return local_machine(lanes)
    return load_machine(spec)


def machine_for(model: Model, machine: Machine) -> Machine:
    """The machine as the runtime of this model sees it: PyTorch models run on torch's devices."""
    if model.executable is None or model.executable.format != "torch":
        return machine
    from profiling.devices.runtimes import for_runtime

    return for_runtime(machine, "torch")


def list_placers() -> list[dict[str, Any]]:
    """Every placer with its summary, paper and settings."""
    from placement.placers import names, placer_class
    from placement.placers.base import describe

    return [describe(name, placer_class(name)) for name in names()]


def can_measure(model: Model, machine: Machine) -> bool:
    """Whether the model can be executed and every device of the machine is on this computer."""
    from profiling.devices.local import missing_devices

    return model.executable is not None and not machine.emulated and not missing_devices(machine)


def stored_profile(model: Model, machine: Machine) -> Profile | None:
    """The profile of this graph on this machine that was measured before, if any."""
    from profiling.measuring.store import ProfileStore

    return ProfileStore().get(model.graph.fingerprint, machine.fingerprint)


def profile(
    model: Model,
    machine: Machine,
    *,
    emit: Emit = silent,
    refresh: bool = False,
    timeout_s: float | None = None,
) -> Profile:
    """Measured costs of every kernel and link; from the store unless `refresh` asks anew.

    Measuring may take `timeout_s`, by default as long as it takes.
    """
    found = None if refresh else stored_profile(model, machine)
    if found is not None:
        return found
    from profiling.measuring.store import ProfileStore

    require_present(model, machine)
    measured = _measured(model, machine, timeout_s, emit=emit)
    try:
        ProfileStore().put(measured)
    except NotWritten as error:
        message = f"What was measured is used now, but is not kept: {error}"
        _log.warning(message)
        emit({"event": "not_kept", "message": message, "profile": measured.to_json()})
    return measured


def _profile_type() -> Any:
    from placement.core.profile import Profile

    return Profile


@in_confinement(_profile_type)
def _measured(model: Model, machine: Machine, timeout_s: float | None, *, emit: Emit) -> Profile:
    from profiling.measuring import kernels
    from profiling.measuring.lock import measuring
    from profiling.sandbox.confinement import deadline

    with measuring(f"profile of {model.graph.name}", waiting(emit)), deadline(timeout_s):
        return kernels.profile(model, machine, emit, timeout_s)


def make_problem(
    model: Model,
    machine: Machine,
    profile: Profile | None = None,
    *,
    objective: str = "latency",
    pins: Sequence[tuple[str, str]] = (),
) -> Problem:
    """The placement problem of a model on a machine.

    With a profile its kernels and measured costs, else each op its own kernel with analytic
    (roofline) costs. A file that carries its own machine and costs keeps them.
    """
    from placement.core.decoding import listed, shown
    from placement.core.problem import Problem, own_kernels
    from placement.costs.roofline import roofline

    if model.problem is not None:
        return dataclasses.replace(model.problem, objective=objective, pins=tuple(pins))
    graph = model.graph
    if profile is None:
        costs = roofline(graph, machine)
        return Problem(
            graph, machine, costs, graph, own_kernels(graph), pins=tuple(pins), objective=objective
        )
    if profile.graph != graph.fingerprint:
        raise ValueError(
            f"The profile is of another graph ({shown(profile.graph)}, this one is"
            f" {graph.fingerprint}); measure this model."
        )
    wanted = [d.name for d in machine.devices]
    if [d.name for d in profile.machine.devices] != wanted:
        raise ValueError(
            f"The profile is for devices {listed(profile.machine.index)}, the machine has"
            f" {listed(wanted)}; measure on this machine."
        )
    named = {name for names in profile.sources for name in names}
    unknown = next((name for name in sorted(named) if name not in graph.index), None)
    if unknown is not None:
        raise ValueError(
            f"The profile's kernels do not fit graph {shown(graph.name)} (it has no op"
            f" {shown(unknown)}); measure this model again."
        )
    same = profile.machine.fingerprint == machine.fingerprint
    return Problem(
        graph,
        dataclasses.replace(machine, links=profile.machine.links),
        profile.costs() if same else dataclasses.replace(profile.costs(), origin="given"),
        profile.kernels,
        tuple(tuple(graph.index[name] for name in names) for names in profile.sources),
        pins=tuple(pins),
        objective=objective,
    )


def list_exporters() -> list[dict[str, Any]]:
    """Every export format with its summary and the ending of its files."""
    from placement.exporters import exporters as known

    keys = ("name", "title", "summary", "suffix")
    return [{key: getattr(found, key) for key in keys} for found in known()]


def export(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    path: str | Path,
    *,
    label: str = "",
    measured: Timeline | None = None,
    view: Callable[[], View] | None = None,
) -> str:
    """Write a placed model in another format; a ValueError lists the formats or says what lacks.

    What the format cannot tell of this placement is returned as a sentence. `label` is the
    placement's name, `measured` the timeline of a run of it, and `view` makes the picture for
    formats that are one (`pages.ui.canvas.build_view` does).
    """
    from placement.exporters import Export, exporter, note, write

    placement.require_graph(model.graph)
    made = Export(model, problem, placement, label, measured=measured, view=view)
    try:
        write(exporter(format), made, Path(path))
        return note(exporter(format), made)
    except ContentElsewhereError:
        about = (problem, placement, format)
        return _exported(model, *about, path=str(path), label=label, measured=measured)


@in_confinement(lambda: str, writes="path")
def _exported(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    *,
    path: str,
    label: str,
    measured: Timeline | None,
) -> str:
    """The same for formats that are made of the model's content."""
    return export(model, problem, placement, format, path, label=label, measured=measured)


def export_notes(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    view: Callable[[], View] | None = None,
) -> tuple[str, str]:
    """What a format says of a placement: what is missing for it, else what it would leave out."""
    from placement.exporters import Export, exporter, note

    found = exporter(format)
    made = Export(model, problem, placement, view=view)
    try:
        reason = found.missing(made)
        return reason, "" if reason else note(found, made)
    except ContentElsewhereError:
        return _noted(model, problem, placement, format)


@in_confinement(lambda: tuple[str, str])
def _noted(model: Model, problem: Problem, placement: Placement, format: str) -> tuple[str, str]:
    return export_notes(model, problem, placement, format)
