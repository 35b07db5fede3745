"""PyTorch programs: opened through a clean copy, and never run by opening them."""

import contextlib
import copy
import io
import json
import os
import warnings
import zipfile

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import placement as pl
from placement.formats.torch.pt2.allowed import is_allowed
from placement.loaders import load


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    """Convolution, normalisation, several results of one op, a recurrent layer, two outputs."""

    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(8, 4)
        self.lstm = nn.LSTM(4, 6, batch_first=True)

    def forward(self, image):
        left, right = self.head(self.block(image).mean((2, 3))).chunk(2, 1)
        joined = torch.cat([left * 2, right], 1)
        row, _ = self.lstm(joined[:, None, :])
        return row, joined.argmax(1)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def image():
    return torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def saved(net, image, tmp_path_factory):
    path = tmp_path_factory.mktemp("pt2") / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(net, (image,)), path)
    return path


def rewritten(saved, folder, *, replace=(), add=(), edit=None, compress=False):
    """A copy of the archive with entries replaced or added, or its graph edited."""
    path = folder / "hostile.pt2"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        contents = {e.filename: old.read(e) for e in old.infolist()}
        root = next(iter(contents)).partition("/")[0]
        contents |= {f"{root}/{name}": data for name, data in (*replace, *add)}
        if edit is not None:
            name = f"{root}/models/model.json"
            model = json.loads(contents[name])
            edit(model)
            contents[name] = json.dumps(model).encode()
        kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        for name, data in contents.items():
            new.writestr(name, data, compress_type=kind)
    return path


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


def planted(mark):
    buffer = io.BytesIO()
    torch.save(Payload(mark), buffer)
    return buffer.getvalue()


def test_a_program_opens_with_its_modules_weights_and_sizes(saved, net):
    model = load(str(saved))
    graph = model.graph
    assert model.executable.format == "torch"
    weights = [*net.parameters(), net.block.norm.running_mean, net.block.norm.running_var]
    assert graph.param_bytes == sum(w.numel() * w.element_size() for w in weights)
    conv = graph.ops[graph.index["conv2d"]]
    assert (conv.kind, conv.scope) == ("conv2d", "block/conv")
    # 14 x 14 places, 3 x 3 x 3 products for each of 8 channels of 2 images, two each.
    assert conv.flops == 2 * 2 * 14 * 14 * 8 * 27
    chunk = [t for t in graph.tensors if t.producer == "chunk"]
    assert [t.shape for t in chunk] == [(2, 2), (2, 2)]
    assert [t.name for t in graph.inputs] == ["image"]
    assert len(graph.outputs) == 2
    assert load(str(saved)).graph.fingerprint == graph.fingerprint


def test_from_torch_is_what_the_loader_returns(saved, net, image):
    opened, made = load(str(saved)), pl.from_torch(net, image, name="net")
    assert made.graph == opened.graph
    assert made.executable.content_hash == opened.executable.content_hash


@pytest.mark.parametrize(
    "name",
    [
        "data/sample_inputs/model.pt",
        "data/constants/custom_obj_0",
        "data/constants/opaque_obj_0",
        "data/weights/model.pt",
        "data/constants/model.pt",
        "extra/payload.pkl",
        "data/aotinductor/model/model.so",
    ],
)
def test_a_planted_pickle_never_runs(saved, tmp_path, name):
    mark = tmp_path / "ran"
    path = rewritten(saved, tmp_path, add=[(name, planted(mark))])
    assert load(str(path)).graph.fingerprint == load(str(saved)).graph.fingerprint
    assert not mark.exists()


def test_the_payload_would_run(saved, tmp_path):
    """Or the tests of it would show nothing: the library runs what is planted."""
    mark = tmp_path / "ran"
    path = rewritten(saved, tmp_path, add=[("data/sample_inputs/model.pt", planted(mark))])
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        torch.export.load(path)
    assert mark.exists()


@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_pickled_tensors_are_refused(saved, tmp_path, kind):
    mark = tmp_path / "ran"
    entry = {"path_name": "custom_obj_0", "is_param": False, "use_pickle": True}
    config = json.dumps({"config": {"evil": entry}}).encode()
    name = f"data/{kind}/model_{kind}_config.json"
    path = rewritten(
        saved,
        tmp_path,
        replace=[(name, config)],
        add=[(f"data/{kind}/custom_obj_0", planted(mark))],
    )
    with pytest.raises(ValueError, match="Python object, which may run code"):
        load(str(path))
    assert not mark.exists()


def edits():
    """Changes of the graph's JSON that must be refused, and what the sentence says."""

    def node(model):
        return model["graph_module"]["graph"]["nodes"][0]

    def target(text):
        return lambda model: node(model).update(target=text)

    def name(text):
        def edit(model):
            node(model)["outputs"][0]["as_tensor"]["name"] = text

        return edit

    def varying(model):
        model["range_constraints"] = {"s0": {"min_val": 1, "max_val": 2}}

    def expression(model):
        node(model)["inputs"].append(
            {"name": "x", "arg": {"as_sym_int": {"as_expr": {"expr_str": "1"}}}, "kind": 1}
        )

    def weight(model):
        spec = model["graph_module"]["signature"]["input_specs"][0]
        next(iter(spec.values()))["parameter_name"] = "a'); import os; ('"

    def cuda(model):
        values = model["graph_module"]["graph"]["tensor_values"]
        next(iter(values.values()))["device"] = {"type": "cuda", "index": 0}

    def part(model):
        first = node(model)
        first["target"] = "_operator.getitem"

    return {
        "library function": (target("torch.load"), "calls 'torch.load'"),
        "operator": (target("_operator.setitem"), "calls '_operator.setitem'"),
        "other library": (target("torch.ops.mylib.run.default"), "calls 'torch.ops.mylib"),
        "file": (target("torch.ops.aten.from_file.default"), "calls 'torch.ops.aten.from_file"),
        "extension": (target("#evil:thing"), "calls '#evil:thing'"),
        "code in a name": (name("x\nimport os"), "value called"),
        "keyword": (name("import"), "value called"),
        "varying": (varying, "sizes vary"),
        "expression": (expression, "sizes vary"),
        "weight": (weight, "weight called"),
        "cuda": (cuda, "exported on cuda"),
        "memory": (target("torch.ops.aten._sparse_coo_tensor_unsafe.default"), "cannot be opened"),
        "seed": (target("torch.ops.aten.manual_seed.default"), "cannot be opened"),
        "save": (target("torch.ops.aten.save.default"), "cannot be opened"),
        "part of an input": (part, "cannot be opened"),
        "no graph": (lambda model: model.pop("graph_module"), "not understood"),
        "nodes are no list": (
            lambda model: model["graph_module"]["graph"].update(nodes=3),
            "not understood",
        ),
    }


@pytest.mark.parametrize("what", edits())
def test_hostile_graphs_are_refused(saved, tmp_path, what):
    edit, said = edits()[what]
    with pytest.raises(ValueError, match=r"hostile\.pt2") as error:
        load(str(rewritten(saved, tmp_path, edit=edit)))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_writing_ops_open_like_from_torch(tmp_path):
    """Ops that write into what they read are common: most published networks have such a ReLU."""
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)).eval()
    x = torch.rand(2, 4)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "net.pt2")
    opened, made = load(str(tmp_path / "net.pt2")), pl.from_torch(module, x, name="net")
    assert [op.kind for op in opened.graph.ops] == [op.kind for op in made.graph.ops]
    assert "relu_" not in {op.kind for op in opened.graph.ops}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("conv2d.default", True),
        ("relu_.default", True),
        ("add_.Tensor", True),
        ("scaled_dot_product_attention.default", True),
        ("index.Tensor", True),
        ("_sparse_coo_tensor_unsafe.default", False),
        ("_sparse_csr_tensor_unsafe.default", False),
        ("from_file.default", False),
        ("set_.source_Storage", False),
        ("resize_.default", False),
        ("to_dense.default", False),
        ("_fused_adam_.default", False),
    ],
)
def test_operators_that_a_file_may_call(name, allowed):
    packet, _, overload = name.partition(".")
    assert is_allowed(packet, overload) == allowed


def test_the_same_network_of_another_size_is_another_program():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    small, large = (pl.from_torch(module, torch.rand(1, 3, n, n)) for n in (8, 16))
    assert small.executable.content_hash != large.executable.content_hash


def test_tensors_with_odd_metadata(saved, tmp_path):
    config = json.dumps(
        {
            "config": {
                "w": {
                    "path_name": "weight_0",
                    "is_param": True,
                    "use_pickle": False,
                    "tensor_meta": {"as_device": 1},
                }
            }
        }
    ).encode()
    path = rewritten(saved, tmp_path, replace=[("data/weights/model_weights_config.json", config)])
    with pytest.raises(ValueError, match="content is not understood"):
        load(str(path))


def test_archives_that_are_none(saved, tmp_path):
    with pytest.raises(ValueError, match="is compressed, which no export is"):
        load(str(rewritten(saved, tmp_path, compress=True)))
    with pytest.raises(ValueError, match="not in one folder"):
        path = rewritten(saved, tmp_path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("../outside", b"x")
        load(str(path))
    with pytest.raises(ValueError, match="holds 2 models"):
        load(str(rewritten(saved, tmp_path, add=[("models/other.json", b"{}")])))
    for content in (b"PK", b"no zip", saved.read_bytes()[:1000]):
        (tmp_path / "broken.pt2").write_bytes(content)
        with pytest.raises(ValueError, match=r"is no \.pt2 archive"):
            load(str(tmp_path / "broken.pt2"))


@pytest.mark.parametrize("ending", [".pt", ".pth"])
def test_pickles_are_refused_with_the_way_out(tmp_path, ending):
    mark, path = tmp_path / "ran", tmp_path / f"model{ending}"
    path.write_bytes(planted(mark))
    with pytest.raises(ValueError, match="can run any code when it is opened; export the module"):
        load(str(path))
    assert not mark.exists()


def test_the_program_has_nothing_of_people(saved):
    """Stack traces of an export tell folders and lines of code."""
    assert b"test_torch.py" in saved.read_bytes()
    program = load(str(saved)).executable
    assert not any("test_torch.py" in str(node.meta) for node in program.graph.nodes)


def test_modules_that_cannot_be_placed():
    with pytest.raises(ValueError, match="branches or loops on data"):
        pl.from_torch(Branching(), torch.ones(3))
    with pytest.raises(ValueError, match="a tensor, a tuple of tensors in order, or a dict"):
        pl.from_torch(nn.Linear(3, 2), 3)
    with pytest.raises(ValueError, match="cannot be exported"):
        pl.from_torch(nn.Linear(3, 2), torch.ones(1, 4))
    with pytest.raises(ValueError, match=r"is no torch.nn.Module"):
        pl.from_torch(3, torch.ones(3))
    with pytest.raises(ValueError, match="output is no loss"):
        pl.from_torch(nn.Linear(3, 2), torch.ones(1, 3), training=True)
    with pytest.raises(ValueError, match="no optimiser 'lion'; use one of sgd, momentum, adam"):
        pl.from_torch(nn.Linear(3, 1), torch.ones(1, 3), training=True, optimizer="lion")


class Choosing(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class Branching(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


@pytest.mark.parametrize("inner", [Choosing, Branching])
def test_a_refusal_names_the_module_that_decides_by_data(inner):
    outer = nn.Sequential()
    outer.add_module("first", nn.Linear(3, 3))
    outer.add_module("second", inner())
    with pytest.raises(ValueError, match=r"in its module 'second' .*op by op; give it inputs"):
        pl.from_torch(outer, torch.ones(3))


def test_inputs_come_by_name_and_plain_calls_are_opened():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x, *, scale=None, shift=None):
            made = checkpoint(self.inner, x, use_reentrant=False)
            with torch.no_grad():
                made = made * scale["by"]
            return {"made": made, "more": [made + 1, (made + 2,)]}

    given = {"x": torch.rand(2, 3), "scale": {"by": torch.rand(1)}}
    graph = pl.from_torch(Wrapped(), given).graph
    assert [t.name for t in graph.inputs if t.shape != (3,) and t.shape != (3, 3)] == [
        "x",
        "scale_by",
    ]
    assert [t.name for t in graph.outputs] == ["made", "more_0", "more_1_0"]
    assert [op.kind for op in graph.ops] == ["linear", "mul", "add", "add"]


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    module = nn.Sequential(Block(), nn.Flatten(), nn.Linear(8 * 36, 5))
    return pl.from_torch(
        module,
        torch.rand(4, 3, 8, 8),
        training=True,
        loss=nn.functional.cross_entropy,
        targets=(torch.zeros(4, dtype=torch.int64),),
        optimizer="adam",
    )


def test_a_training_step_has_phases_modules_and_mates(trained):
    graph = trained.graph
    by_phase = {op.phase for op in graph.ops}
    assert by_phase == {"forward", "backward", "update"}
    back = graph.ops[graph.index["convolution_backward"]]
    assert (back.phase, back.scope) == ("backward", "0/conv")
    assert dict(back.attributes)["derived from"] == "convolution"
    updates = [op for op in graph.ops if op.phase == "update"]
    assert len(updates) == 6
    assert {op.kind for op in updates} == {"update_adam"}
    assert [(t.name, t.shape) for t in graph.outputs] == [("loss", ())]


def test_a_parameter_its_gradient_and_its_update_are_one_group(trained):
    graph = trained.graph
    group = {op.name: op.colocation_group for op in graph.ops}
    assert group["convolution"] is not None
    assert group["convolution"] == group["convolution_backward"] == group["update_adam"]
    assert group["addmm"] != group["convolution"]
    program = trained.executable
    name = {label: held for held, label in program.labels.items()}
    for label in ("0.conv.weight", "2.weight", "2.bias"):
        place = program.nodes[name[label]]
        update = next(user for user in place.users if user.name.startswith("update"))
        # Views of a weight and of its gradient are passed over: what computes is in the group.
        assert group[update.name] == group["addmm" if label.startswith("2") else "convolution"]
    products = [op.name for op in graph.ops if op.kind == "mm" and op.phase == "backward"]
    assert [group[name] for name in products].count(group["addmm"]) == 1


def test_optimiser_state_counts_in_memory(trained):
    program = trained.executable
    state = {program.labels[name]: value for name, value in program.state.items()}
    moments = [v for name, v in state.items() if name.endswith((".mean", ".square"))]
    weights = [state[name] for name in ("0.conv.weight", "2.weight")]
    assert len(moments) == 12
    assert not any(v.any() for v in moments)
    assert trained.graph.param_bytes > 3 * sum(w.numel() * 4 for w in weights)


@pytest.mark.parametrize("training", [False, True])
def test_tracing_leaves_the_module_as_it_was(training):
    torch.manual_seed(0)
    module = nn.Sequential(Block(), nn.Flatten(), nn.Linear(8 * 36, 1)).train(not training)
    module[2].train(training)
    before = copy.deepcopy(module.state_dict())
    loss = torch.sum if training else None
    pl.from_torch(module, torch.rand(4, 3, 8, 8), training=training, loss=loss)
    assert [m.training for m in module] == [not training, not training, training]
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
