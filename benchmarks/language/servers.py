"""Exports for vLLM and llama.cpp against the code of these libraries that reads them.

    python -m benchmarks.language.servers [--json] [--vllm WHEEL] [--llama-cpp SDIST] [--cases N]

`pip download --no-deps vllm` gives the wheel, `pip download --no-deps --no-binary :all:
llama-cpp-python` the archive of sources; neither is installed. Of the one, the function that reads
VLLM_PP_LAYER_PARTITION is taken and asked for the layers of every rank; of the other, the lines of
`load_tensors` that give layers to devices are compiled by g++ with the names around them made up.
Placements are drawn at random for a few shipped configurations: runs of layers on up to eight
accelerators, for llama.cpp with some on the CPU before them. What is taken from these archives is
run, so they should be the ones that were released.
"""

import ast
import json
import random
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._shared.figures import parser, show
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.exporters import Export

MODELS = ("smollm2-135m", "llama-3.2-1b", "mixtral-8x7b")
COLUMNS = {
    "library": "{library}",
    "code": "{code}",
    "placements": "{placements}",
    "read as placed": "{equal}",
}
UTILS, FUNCTION = "vllm/distributed/utils.py", "get_pp_indices"
SOURCE = "llama-model.cpp"
BEGIN, END = "    // calculate the split points", "    const auto TENSOR_NOT_REQUIRED"
# Reads cases of one line each: layers, layers on accelerators, devices, and a share for each.
HARNESS = r"""
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#define LLAMA_LOG_DEBUG(...)
typedef const int * ggml_backend_dev_t;
struct buft_list {};
struct llama_model { struct impl { struct layer_dev { ggml_backend_dev_t dev; buft_list * list; };
    buft_list cpu_buft_list; std::unordered_map<ggml_backend_dev_t, buft_list> gpu_buft_list;
    layer_dev dev_input, dev_output; std::vector<layer_dev> dev_layer; }; };
struct device { ggml_backend_dev_t dev; };
void ggml_backend_dev_memory(ggml_backend_dev_t, size_t * free, size_t * total) {
    *free = *total = 1;
}
const char * ggml_backend_dev_name(ggml_backend_dev_t) { return ""; }
struct { bool is_swa(int) { return false; } } hparams;
void assign(int n_layer_all, int n_gpu_layers, std::vector<float> shares) {
    std::vector<device> devices;
    llama_model::impl made, * pimpl = &made;
    const int none = -1, * cpu_dev = &none;
    std::vector<int> numbers(shares.size());
    for (size_t i = 0; i < shares.size(); ++i) {
        numbers[i] = int(i);
        devices.push_back({&numbers[i]});
        made.gpu_buft_list[&numbers[i]] = {};
    }
    auto n_devices = [&]() { return devices.size(); };
    const float * tensor_split = shares.data();
@LINES@
    for (auto & layer : made.dev_layer) std::cout << *layer.dev << " ";
    std::cout << *made.dev_output.dev << "\n";
}
int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        int layers, on_gpu; words >> layers >> on_gpu;
        std::vector<float> shares; float share;
        while (words >> share) shares.push_back(share);
        assign(layers, on_gpu, shares);
    }
}
"""


def exports(name: str, number: int, *, with_cpu: bool) -> Iterator[tuple[Export, list[str]]]:
    """Random placements of a model's layers, with the device of each layer."""
    import placement as pl

    model, machine = pl.load(name, {"length": 8}), pl.machine("nvlink-8gpu")
    problem, rng = pl.make_problem(model, machine), random.Random(name)
    paths = [op.scope.split("/") for op in model.graph.ops]
    numbers = [next((int(word) for word in path if word.isdecimal()), -1) for path in paths]
    gpus = [d.name for d in machine.devices if not d.on_host]
    host = next(d.name for d in machine.devices if d.on_host)
    for _ in range(number):
        devices = _runs(rng, max(numbers) + 1, gpus, host if with_cpu else "")
        yield Export(model, problem, _placed(model, machine, numbers, devices)), devices


def _runs(rng: random.Random, num_layers: int, gpus: list[str], host: str) -> list[str]:
    used = rng.sample(gpus, rng.randint(1, min(len(gpus), num_layers)))
    used = [host, *used[: num_layers - 1]] if host and rng.random() < 0.5 else used
    borders = sorted(rng.sample(range(1, num_layers), len(used) - 1))
    ends = [*borders, num_layers]
    return [d for d, a, b in zip(used, [0, *borders], ends, strict=True) for _ in range(a, b)]


def _placed(model: Model, machine: Machine, numbers: list[int], devices: list[str]) -> Placement:
    inside = [i for i, number in enumerate(numbers) if number >= 0]
    behind = dict.fromkeys(range(inside[-1], len(numbers)), devices[-1])
    device_of = {
        op.name: devices[number] if number >= 0 else behind.get(i, devices[0])
        for i, (op, number) in enumerate(zip(model.graph.ops, numbers, strict=True))
    }
    return Placement(model.graph.fingerprint, machine.name, device_of)


def written(name: str, export: Export, folder: Path) -> dict[str, Any]:
    from placement.exporters import exporter

    missing = exporter(name).missing(export)
    assert not missing, missing
    exporter(name).export(export, folder / "export.json")
    content: dict[str, Any] = json.loads((folder / "export.json").read_text())
    return content


def reader_of_vllm(wheel: Path) -> Callable[[str, int, int, int], tuple[int, int]]:
    """Layers of a rank by vLLM's own function: of a partition, of layers, rank and ranks."""
    source = zipfile.ZipFile(wheel).read(UTILS).decode()
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == FUNCTION
    ]
    settings = SimpleNamespace(VLLM_PP_LAYER_PARTITION=None)
    names: dict[str, Any] = {"envs": settings}
    exec(compile(ast.Module(found, []), UTILS, "exec"), names)

    def layers(partition: str, num_layers: int, rank: int, num_ranks: int) -> tuple[int, int]:
        settings.VLLM_PP_LAYER_PARTITION = partition
        first, end = names[FUNCTION](num_layers, rank, num_ranks)
        return first, end

    return layers


def vllm_row(wheel: Path, cases: int, folder: Path) -> dict[str, Any]:
    layers, equal, number = reader_of_vllm(wheel), 0, 0
    for name in MODELS:
        for export, devices in exports(name, cases, with_cpu=False):
            content = written("vllm-layers", export, folder)
            ranks = content["ranks"]
            read: list[str] = []
            for row in ranks:
                given = (content["num_hidden_layers"], row["rank"], len(ranks))
                first, end = layers(content["VLLM_PP_LAYER_PARTITION"], *given)
                read += [row["device"]] * (end - first)
            equal, number = equal + (read == devices), number + 1
    return {"library": wheel.name, "code": FUNCTION, "placements": number, "equal": equal}


def program_of_llama_cpp(sdist: Path, folder: Path) -> Path:
    """A program of llama.cpp's lines that give layers to devices."""
    with tarfile.open(sdist) as archive:
        member = next(m for m in archive if Path(m.name).name == SOURCE)
        content = archive.extractfile(member)
        assert content is not None
        source = content.read().decode()
    lines = source[source.index(BEGIN) : source.index(END, source.index(BEGIN))]
    (folder / "assign.cpp").write_text(HARNESS.replace("@LINES@", lines))
    made = folder / "assign"
    subprocess.run(["g++", "-std=c++17", "-o", made, folder / "assign.cpp"], check=True)
    return made


def llama_row(sdist: Path, cases: int, folder: Path) -> dict[str, Any]:
    given, wanted = list[str](), list[list[str]]()
    for name in MODELS:
        for export, devices in exports(name, cases, with_cpu=True):
            content = written("llama-cpp-split", export, folder)
            named = [row["device"] for row in content["accelerators"]]
            told = dict(zip(content["arguments"][::2], content["arguments"][1::2], strict=True))
            shares = told.get("--tensor-split", "").replace(",", " ")
            given.append(f"{content['num_layers']} {told['--n-gpu-layers']} {shares}")
            index = {device: str(i) for i, device in enumerate(named)}
            # The output is where the last layer is.
            wanted.append([index.get(device, "-1") for device in (*devices, devices[-1])])
    program = program_of_llama_cpp(sdist, folder)
    told_text = subprocess.run(
        [program], input="\n".join(given), capture_output=True, text=True, check=True
    ).stdout
    read = [line.split() for line in told_text.splitlines()]
    equal = sum(a == b for a, b in zip(read, wanted, strict=True))
    return {
        "library": sdist.name,
        "code": "load_tensors",
        "placements": len(wanted),
        "equal": equal,
    }


def main() -> None:
    options = parser(__doc__, vllm="", llama_cpp="", cases=30).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        if options.vllm:
            rows.append(vllm_row(Path(options.vllm), options.cases, Path(folder)))
        if options.llama_cpp:
            rows.append(llama_row(Path(options.llama_cpp), options.cases, Path(folder)))
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
