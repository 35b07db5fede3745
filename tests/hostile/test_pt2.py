"""Files of PyTorch programs that nobody trusts: refused by one sentence, or opened safely."""

import contextlib
import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
from torch import fx, nn

import placement as pl
from placement.formats.torch.pt2 import inferred as _torch_inferred
from placement.formats.torch.pt2.allowed import NAMES
from placement.formats.torch.pt2.archive import Refused
from placement.formats.torch.pt2.checks import require_safe
from placement.loaders import load

FILES = sorted(Path(__file__).parent.glob("*.pt2"))
SAID = {
    "op_bn": "a weight of [1] for 50000000 channels",
    "op_flash": "is given tensors of",
    "op_jit": "not among the operators",
    "op_laguerre": "special_laguerre_polynomial_l",
    "op_lie": "says that 'e' is float32 of [1], but its operators make float32 of [1500000000]",
    "op_maxpool_bw": "max_pool2d_with_indices_backward",
    "op_sobol": "_sobol_engine_draw",
    "op_weightnorm": "lengths of [1, 1] for [1000000, 4]",
    "w_empty10g": "needs 10000000000 bytes, but the file has 0",
    "w_oob": "needs 4000000000 bytes, but the file has 16",
    "w_zero_stride": "claims more bytes than the file has",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_hostile_file_is_one_sentence(path):
    with pytest.raises(ValueError) as error:
        load(str(path))
    said = str(error.value)
    assert path.name in said and "\n" not in said
    assert SAID[path.stem] in said


def saved(module, inputs, folder, keywords=None):
    path = folder / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), inputs, keywords), path)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    return saved(module, (torch.rand(2, 4),), tmp_path_factory.mktemp("plain"))


def edited(path, folder, edit, entry="models/model.json"):
    """A copy of an archive with the JSON of one entry edited."""
    copy = folder / "edited.pt2"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for each in old.infolist():
            content = old.read(each)
            if each.filename.endswith(f"/{entry}"):
                value = json.loads(content)
                edit(value)
                content = json.dumps(value).encode()
            new.writestr(each.filename, content)
    return copy


MARK = "pt2_marker_module"


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """A folder on the path with a module that leaves a mark when it is imported."""
    (tmp_path / f"{MARK}.py").write_text(
        f"from enum import Enum\nopen({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "class Mark(Enum):\n    A = 'a'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop(MARK, None)


def naming(key):
    """Puts an enum of the marker module into how inputs or outputs are nested."""

    def edit(model):
        signature = model["graph_module"]["module_call_graph"][0]["signature"]
        version, tree = json.loads(signature[key])
        value = {"__enum__": True, "fqn": f"{MARK}:Mark", "name": "A"}
        [*_, last] = [tree, *tree["children_spec"]]
        last.update(
            type="builtins.dict",
            context=json.dumps([value]),
            children_spec=[{"type": None, "context": None, "children_spec": []}],
        )
        signature[key] = json.dumps([version, tree])

    return edit


@pytest.mark.parametrize("key", ["in_spec", "out_spec"])
def test_how_values_are_nested_imports_nothing(plain, marked, key):
    path = edited(plain, marked, naming(key))
    assert load(str(path)).graph.fingerprint == load(str(plain)).graph.fingerprint
    assert not (marked / "ran").exists()


@pytest.mark.parametrize("key", ["in_spec", "out_spec"])
def test_the_library_would_import_what_is_named(plain, marked, key):
    """Or the test above would show nothing."""
    path = edited(plain, marked, naming(key))
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        torch.export.load(path)
    assert (marked / "ran").exists()


def test_nothing_of_a_file_reaches_the_librarys_loader(plain, monkeypatch):
    def never(*arguments, **more):
        raise AssertionError("called")

    for name in ("torch.export.load", "torch.load", "torch._C.PyTorchFileReader"):
        monkeypatch.setattr(name, never)
    monkeypatch.setattr("torch.utils._pytree.treespec_loads", never)
    assert [op.kind for op in load(str(plain)).graph.ops] == ["linear", "relu"]


def test_another_format_with_a_zip_behind_it(plain, tmp_path):
    path = tmp_path / "both.pt2"
    path.write_bytes(b"\x7fELF" + bytes(60) + plain.read_bytes())
    with pytest.raises(ValueError, match="does not begin as a zip file"):
        load(str(path))
    path.write_bytes(b"PK\x03\x04" + bytes(60) + plain.read_bytes())
    with pytest.raises(ValueError, match="does not lie behind the one before"):
        load(str(path))


def weight_of(**changes):
    """Changes what the archive says of its first weight."""

    def edit(config):
        [first, *_] = config["config"].values()
        first["tensor_meta"].update(changes)

    return edit


def ints(*numbers):
    return [{"as_int": n} for n in numbers]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": ints(3, 5)}, "needs"),
        ({"storage_offset": {"as_int": 1}}, "needs 52 bytes, but the file has 48"),
        ({"strides": ints(8, 1)}, "needs"),
        ({"strides": ints(-4, 1)}, "size or stride -4"),
        ({"sizes": ints(2**20, 2**20), "strides": ints(0, 0)}, "claims more bytes"),
        ({"sizes": ints(2**47, 2**47), "strides": ints(0, 0)}, "has sizes"),
        ({"sizes": ints(3)}, "has sizes"),
        ({"sizes": ints(True, 4)}, "size or stride True"),
        ({"dtype": 99}, "type or layout that is not known"),
        ({"layout": 1}, "type or layout that is not known"),
        ({"device": {"type": "cuda", "index": 0}}, "exported on cuda"),
        ({"sizes": [{"as_expr": {"expr_str": "__import__('os')"}}] * 2}, "sizes vary"),
        ({"sizes": ints(4, 3), "strides": ints(3, 1)}, "but its operators make"),
    ],
)
def test_weights_that_claim_what_is_not_there(plain, tmp_path, changes, said):
    path = edited(plain, tmp_path, weight_of(**changes), "data/weights/model_weights_config.json")
    with pytest.raises(ValueError, match=r"edited\.pt2") as error:
        load(str(path))
    assert said in str(error.value)


def test_a_small_weight_may_repeat_its_elements(plain, tmp_path):
    edit = weight_of(strides=ints(0, 1))
    path = edited(plain, tmp_path, edit, "data/weights/model_weights_config.json")
    state = load(str(path)).executable.state
    weight = next(value for value in state.values() if value.shape == (3, 4))
    assert weight.is_contiguous()
    assert torch.equal(weight[0], weight[1])


def called(**changes):
    """Changes the first call of the graph, or what is said of its value."""

    def edit(model):
        graph = model["graph_module"]["graph"]
        for key, value in changes.items():
            if key == "claim":
                graph["tensor_values"]["linear"].update(value)
            elif key == "argument":
                graph["nodes"][0]["inputs"][0]["arg"] = value
            else:
                graph["nodes"][0][key] = value

    return edit


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"claim": {"sizes": ints(2, 4)}}, "says that 'linear' is float32 of [2, 4]"),
        ({"claim": {"dtype": 8}}, "says that 'linear' is float64 of [2, 3]"),
        ({"argument": {"as_string": "os; import x"}}, "argument that is not understood"),
        ({"argument": {"as_operator": "torch.load"}}, "objects of Python"),
        ({"argument": {"as_custom_obj": {"name": "x", "class_fqn": "os"}}}, "objects of Python"),
        ({"argument": {"as_tensor": {"name": "linear"}}}, "which nothing made before"),
        ({"argument": {"as_int": 2**70}}, "more than 64 bits"),
        ({"argument": {"as_int": True}}, "argument that is not understood"),
        ({"argument": {"as_device": {"type": "meta"}}}, "exported on meta"),
        ({"argument": {"as_int": 3}}, "cannot be called like this"),
        ({"target": "math.trunc"}, "calls 'math.trunc'"),
        ({"target": "torch.ops.aten.linear.default.__class__"}, "not among the operators"),
        ({"target": "torch.ops.aten.rand.generator"}, "not among the operators"),
        ({"target": "torch.ops.aten.add.out"}, "not among the operators"),
        ({"target": ["torch"]}, "content is not understood"),
        ({"outputs": [{"as_tensor": {"name": "p_0_weight"}}]}, "two values called"),
        ({"outputs": []}, "cannot be opened"),
        ({"name": "lambda"}, "a value called 'lambda'"),
    ],
)
def test_calls_that_a_file_may_not_make(plain, tmp_path, changes, said):
    with pytest.raises(ValueError, match=r"edited\.pt2") as error:
        load(str(edited(plain, tmp_path, called(**changes))))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_step_that_makes_more_than_any_computer_holds(tmp_path):
    class Large(nn.Module):
        def forward(self, x):
            return x.expand(2**20, 2**20).clone().sum()

    path = saved(Large(), (torch.ones(1, 1),), tmp_path)
    with pytest.raises(ValueError, match="a step of it makes more than"):
        load(str(path))


def test_what_a_file_may_not_call_a_module_may():
    class Bessel(nn.Module):
        def forward(self, x):
            return torch.special.chebyshev_polynomial_t(x, 3)

    assert "special_chebyshev_polynomial_t.n_scalar" not in NAMES
    assert len(pl.from_torch(Bessel(), torch.ones(3)).graph.ops) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("lstm.input", {"hx": [(1, 2, 9), (1, 2, 5)]}, "states or weights of other sizes"),
        ("lstm.input", {"num_layers": 2}, "2 states and 4 weights for 2 layers"),
        ("upsample_nearest2d.default", {"scales_h": 1e-30}, "factors"),
        (
            "_upsample_bilinear2d_aa.default",
            {"self": [(1, 1, 1, 1)], "output_size": [1, 1], "scales_h": 1e-9},
            "factors [1e-09",
        ),
        ("_upsample_nearest_exact3d.vec", {"scale_factors": [1e30] * 3}, "factors"),
        ("special_multigammaln.default", {"p": 10**9}, "p 1000000000"),
        ("native_group_norm.default", {"HxW": 10**6}, "sizes [2, 4, 1000000]"),
        ("_fft_c2r.default", {"last_dim_size": 1000}, "1000 values for 4 frequencies"),
        ("_fft_c2r.default", {"dim": [-2]}, "dimensions [-2]"),
        ("_fft_r2c.default", {"dim": [-2]}, "dimensions [-2]"),
        ("_fft_c2c.default", {"dim": [1, 1]}, "dimensions [1, 1]"),
        ("pixel_unshuffle.default", {"self": [(2, 0, 6, 6)]}, "a tensor of [2, 0, 6, 6]"),
        ("threshold_backward.default", {"grad_output": [(3, 4), torch.int32]}, "torch.int32"),
        ("avg_pool2d.default", {"stride": [0, 0]}, "stride [0, 0]"),
        ("grid_sampler.default", {"padding_mode": 7}, "padding_mode 7"),
        ("zeros.default", {"size": [2**41]}, "more than"),
        ("nll_loss_nd.default", {"reduction": 5}, "reduction 5"),
    ],
)
def test_arguments_that_kernels_would_trust(name, arguments, said):
    from tests.hostile.pt2_calls import valid_call
    from tests.hostile.pt2_tensors import Spec, built

    packet, _, overload = name.partition(".")
    target = getattr(getattr(torch.ops.aten, packet), overload)
    call = valid_call(target, 0)
    require_safe(target, (), built(call))
    for key, value in arguments.items():
        if isinstance(value, list) and isinstance(value[0], tuple):
            is_one = isinstance(call[key], Spec)
            value = Spec(*value) if is_one else [Spec(each) for each in value]
        call[key] = value
    with pytest.raises(Refused) as error:
        require_safe(target, (), built(call))
    assert said in str(error.value)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kept", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", sorted(_torch_inferred.NORMALISING))
def test_statistics_are_inferred_in_the_type_that_they_have(name, kept, half):
    """The library's own inference takes the type of the input for them."""
    target = getattr(torch.ops.aten, name).default
    x, p = torch.ones(2, 4, 6, 6, dtype=half), torch.ones(4, dtype=kept)
    arguments = {
        "native_layer_norm": (x[0, 0, :, :4], [4], p, p, 0.5),
        "native_group_norm": (x, p, p, 2, 4, 36, 2, 0.5),
        "_native_batch_norm_legit_no_training": (x, p, p, p, p, 0.1, 0.5),
        "_batch_norm_with_update": (x, p, p, p, p, 0.1, 0.5),
    }.get(name, (x, p, p, p, p, True, 0.1, 0.5))
    try:
        made = target(*arguments)
    except RuntimeError:
        assert kept not in (half, torch.float32), "types that kernels do not take together"
        return
    inference = _torch_inferred.Inference()
    fakes = [inference.like(v) if isinstance(v, torch.Tensor) else v for v in arguments]
    inferred = inference.call(target, fakes, {})
    assert [(v.shape, v.dtype) for v in made] == [(v.shape, v.dtype) for v in inferred]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class Wrapped(nn.Module):
    """Positions worked out without gradients, as published language models do."""

    def forward(self, x):
        with torch.no_grad():
            with torch.autocast("cpu", enabled=False):
                places = torch.arange(4)[None].float().cos()
            first, second = (x * places).chunk(2, -1)
        return torch.cat([-second, first], -1)


class Nested(nn.Module):
    def forward(self, x, number, named, *, flag=None):
        total, place = torch.max(named["y"], 1)
        return {"scaled": x * number, "place": place, "none": flag, "five": 5}, total


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("mask", torch.arange(4) < 3, persistent=False)
        self.scale = torch.tensor([1.0, 2, 3, 4])

    def forward(self, x):
        self.seen.add_(1)
        y = x.masked_fill(~self.mask, float("-inf")).exp()
        y[:, 0] = 2.5
        return y * self.scale + self.seen


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.embedding(tokens)).log_softmax(-1)


class Called(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


def modules():
    """Modules of many kinds, with what they take."""
    x, row, image = torch.rand(2, 4), torch.rand(2, 4, 10), torch.rand(2, 4, 8, 8)
    index, steps = torch.tensor([[0, 1], [2, 0]]), torch.rand(2, 3, 10)
    seq = nn.Sequential
    return {
        "linear": (nn.Linear(4, 3), (x,)),
        "attention": (Attention(), (torch.rand(2, 5, 8),)),
        "wrapped": (Wrapped(), (x,)),
        "nested": (Nested(), (x, 3, {"y": x})),
        "counting": (Counting(), (x,)),
        "tied": (Tied(), (index,)),
        "convolutions": (
            seq(nn.Conv2d(4, 8, 3, padding="same"), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((3, None)), nn.Flatten()), (image,)),
        "transposed": (seq(nn.ConvTranspose2d(4, 4, 3, 2), nn.GroupNorm(2, 4), nn.SiLU()),
                       (image,)),
        "one dimension": (seq(nn.Conv1d(4, 4, 3), nn.InstanceNorm1d(4), nn.AvgPool1d(2)), (row,)),
        "padding": (seq(nn.ReflectionPad2d(1), nn.ReplicationPad2d(1), nn.ZeroPad2d(1)), (image,)),
        "upsampling": (seq(nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelShuffle(2)),
                       (image,)),
        "lstm": (nn.LSTM(10, 6, 2, bidirectional=True, batch_first=True), (steps,)),
        "projected lstm": (nn.LSTM(10, 6, proj_size=3), (row,)),
        "gru": (nn.GRU(10, 6), (row,)),
        "cells": (nn.LSTMCell(4, 5), (x,)),
        "weight norm": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (x,)),
        "indexing": (Called(lambda v, i: (v[i[0]], v.gather(1, i), v.index_select(0, i[0]),
                                          v.scatter(1, i, v), v[:, ::2], v[..., -1])),
                     (torch.rand(4, 4), index)),
        "sorting": (Called(lambda v: (*v.topk(2), *v.sort(), v.cumsum(1), v.argmax(1))), (x,)),
        "products": (Called(lambda v: (torch.einsum("ij,kj->ik", v, v), v @ v.mT, v.outer)[:2]),
                     (x,)),
        "shapes": (Called(lambda v: (*v.split([1, 3], 1), *v.unbind(0), v.permute(1, 0).flatten(),
                                     torch.stack([v, v]), v.expand(3, 2, 4), v.repeat(2, 1))),
                   (x,)),
        "statistics": (Called(lambda v: (v.var(1), v.std(), *torch.var_mean(v, 1), v.norm(dim=1))),
                       (x,)),
        "other names": (Called(lambda v: (
            torch.concat([v.ravel(), v.reshape_as(v.mT).flatten()]),
            v.swapdims(0, 1).moveaxis(0, 1),
            v.multiply(v).subtract(v).divide(2).clip(-1, 1), v.greater(v.negative()),
            nn.functional.relu6(v), torch.special.expit(v), torch.atleast_2d(v.diag()))), (x,)),
        "smooth sizes": (Called(lambda v: [
            nn.functional.interpolate(v, size=(9, 7), mode=mode, **more)
            for mode, more in (("bicubic", {"antialias": True}), ("bilinear", {"antialias": True}),
                               ("nearest-exact", {}))]), (image,)),
        "waves": (Called(lambda v: torch.fft.irfft(torch.fft.rfft(v))), (x,)),
    }  # fmt: skip


@pytest.mark.parametrize("name", modules())
def test_real_exports_open_and_compute_the_same(name, tmp_path):
    torch.manual_seed(0)
    module, inputs = modules()[name]
    path = saved(module, inputs, tmp_path)
    check_opened(path, inputs, computed(module, inputs))


class Together(nn.Module):
    """Modules side by side, each with inputs of its own."""

    def __init__(self, modules):
        super().__init__()
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs):
        return [part(*given) for part, given in zip(self.parts, inputs, strict=True)]


def test_real_exports_with_the_core_operators_alone(tmp_path):
    """All in one program: whatever its size, to write it in core operators takes a moment."""
    torch.manual_seed(0)
    every, inputs = zip(*modules().values(), strict=True)
    module = Together(every).eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        core = torch.export.export(module, inputs).run_decompositions()
        torch.export.save(core, tmp_path / "core.pt2")
    called = {str(node.target) for node in core.graph.nodes if node.op == "call_function"}
    assert not called & {"aten.linear.default", "aten.lstm.input", "aten.conv2d.default"}
    check_opened(tmp_path / "core.pt2", inputs, computed(module, inputs))


def computed(module, inputs):
    """The tensors that a module makes of its inputs."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        made = leaves(module(*inputs))
    return [v for v in made if isinstance(v, torch.Tensor)]


def check_opened(path, inputs, expected):
    """That a file computes what the module did."""
    program = load(str(path)).executable
    flat = leaves(inputs)
    values = dict(zip(program.inputs, [*flat, None], strict=False)) | dict(program.state)
    arguments = [values[n.name] for n in program.graph.nodes if n.op == "placeholder"]
    graph = fx.GraphModule({}, program.graph)
    with torch.no_grad():
        made = dict(zip(outputs(program), leaves(graph(*arguments)), strict=True))
    for (_, node), value in zip(program.outputs, expected, strict=True):
        assert torch.allclose(made[node], value, atol=1e-5)


def outputs(program):
    """Names of what the graph gives back, None for constants."""
    [node] = [n for n in program.graph.nodes if n.op == "output"]
    return [getattr(v, "name", None) for v in leaves(node.args[0])]


def leaves(values):
    return torch.utils._pytree.tree_leaves(values)


def test_listed_operators_withstand_spoilt_arguments():
    """A valid call of each and a spoilt one; `python -m tests.hostile.pt2_fuzz --cases 1000` tries
    more of these. Many of them can be made, and many are refused: only these are counted.
    """
    command = [sys.executable, "-m", "tests.hostile.pt2_fuzz", "--cases", "2", "--seed", "7"]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=1500)
    assert found.stdout, found.stderr[-2000:]
    report = json.loads(found.stdout)
    assert report["faults"] == []
    assert report["operators"] >= len(NAMES)
    assert report["counts"]["value"] > 350
    assert report["counts"]["refused"] > 300
