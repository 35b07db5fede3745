"""The table of CPU and GPU together: its rows on a pretended accelerator, or one sentence."""

from dataclasses import replace

import torch
from torch import nn

import placement as pl
from benchmarks import gpu
from benchmarks.live import gpu_replays
from placement.api import place as placing
from profiling.backends import torch as backend
from profiling.devices.local import local_machine
from profiling.measuring import kernels, links
from tests.profiling.backends.pretend import Pretend, put_in_place, with_pretended


def layers(name):
    """A few layers in place of a network, whose size no row depends on; a training step by name."""
    module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    example = torch.zeros(4, 64)
    if name.endswith(":training"):
        return pl.from_torch(module, example, training=True, loss=torch.sum)
    return pl.from_torch(module, example)


def test_nothing_is_measured_without_an_accelerator(monkeypatch, capsys):
    monkeypatch.setattr(backend, "accelerators", lambda: ())
    monkeypatch.setattr("sys.argv", ["gpu"])
    gpu.main()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "no accelerator is at hand" in said


def test_every_row_runs_where_it_was_asked_to(monkeypatch):
    places = put_in_place(monkeypatch, lambda name: Pretend())
    pretended = with_pretended(local_machine(1), 1).devices[-1]
    monkeypatch.setattr(
        backend, "accelerators", lambda: (replace(pretended, memory_bytes=1 << 34),)
    )
    monkeypatch.setattr(links, "SIZES", (1024, 65536))
    monkeypatch.setattr(kernels, "BUDGET_S", 0.0)
    monkeypatch.setattr(pl, "load", layers)
    monkeypatch.setattr(pl, "profile", kernels.profile)
    place, quick = placing.place, {"auto": "heft"}

    def placed(problem, placer, **more):
        return place(problem, quick.get(placer, placer), **more)

    monkeypatch.setattr(placing, "place", placed)
    rows = list(gpu.rows_of("layers:training", 2))
    assert [row["placement"] for row in rows] == [
        "cpu:0 only",
        "pretend:0 only",
        "auto",
        "pretend:0 only, less memory",
        "auto, less memory",
    ]
    ran = [row for row in rows if "refused" not in row]
    assert all(row["outputs_equal"] and row["ms"] > 0 for row in ran)
    assert rows[1]["requested"] == {"pretend:0": "pretend"}
    assert "memory" in rows[3]["refused"] and places["pretend:0"].given
    assert len(list(gpu.table(rows))) == 2 + len(rows)


def test_replays_are_told_beside_what_they_save(monkeypatch):
    put_in_place(monkeypatch, lambda name: Pretend(captures=True))
    pretended = with_pretended(local_machine(1), 1).devices[-1]
    monkeypatch.setattr(backend, "accelerators", lambda: (pretended,))
    monkeypatch.setattr(pl, "load", layers)
    row = gpu_replays.row_of("layers", 3)
    assert row["was_replayed"] and row["same"] and row["max_abs_diff"] == 0
    assert row["low"] <= row["ratio"] <= row["high"]
    assert "layers" in list(gpu_replays.table([row]))[2]
