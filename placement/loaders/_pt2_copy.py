"""A clean copy of a .pt2 archive: what its graph and weights need, and nothing that could run code.

`torch.export.load` unpickles sample inputs, custom objects and some weights, evaluates size
expressions, resolves any function of the library by name and generates source text from names. So
the user's archive never reaches it: this copy has raw weights, a graph whose every name is an
identifier and whose every function is an aten operator, and sample inputs of our own.
"""

import io
import json
import keyword
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.loaders._files import parse_json

ROOT = "archive"
MAX_FILES = 100_000
MAX_JSON_BYTES = 256 * 2**20
HEADER = ("archive_format", "archive_version", "byteorder", ".data/version")
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
CONFIGS = {WEIGHTS: "model_weights_config.json", CONSTANTS: "model_constants_config.json"}
_PAYLOAD = {WEIGHTS: re.compile(r"weight_\d+"), CONSTANTS: re.compile(r"tensor_\d+")}
_TARGET = re.compile(r"torch\.ops\.aten\.([A-Za-z0-9_]+)(\.[A-Za-z0-9_]+)?|_operator\.getitem")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH = re.compile(r"[A-Za-z0-9_.\-/:\[\]]{1,500}")
_STACK = re.compile(r"[A-Za-z0-9_.\-/:;,\[\]@'() ]{0,10000}")
# They open files or hand memory on.
_FORBIDDEN = ("from_file", "_from_blob")
_TREES = ("builtins.tuple", "builtins.list", "builtins.dict", None)
_NAMED = ("as_tensor", "as_tensors", "as_optional_tensors", "as_nested_tensors")
_VARYING = ("as_sym", "as_expr", "expr_str")
_FOREIGN = ("as_custom_obj", "as_graph", "as_operator", "as_opaque", "as_complex_graph")


def clean_copy(path: Path) -> bytes:
    """A .pt2 archive that is safe to load; a ValueError says what of the original is not."""
    try:
        with zipfile.ZipFile(path) as archive:
            copy = _Copy(archive, path.name)
            try:
                return copy.written()
            except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
                raise copy.bad(f"its content is not understood ({error!r:.100})") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise ValueError(
            f"{path.name!r} is no .pt2 archive ({error}); write it with torch.export.save."
        ) from None


class _Copy:
    """One archive on its way; `files` are its entries without the folder that they all share."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        entries = archive.infolist()
        if not 0 < len(entries) <= MAX_FILES:
            raise self.bad(f"it has {len(entries)} entries")
        self.files = {e.filename.partition("/")[2]: e for e in entries}
        tops = {e.filename.partition("/")[0] for e in entries}
        if len(tops) != 1 or len(self.files) != len(entries):
            raise self.bad("its entries are not in one folder, each once")
        if any(e.flag_bits & 1 for e in entries):
            raise self.bad("it is encrypted")
        packed = next((e for e in entries if e.compress_type != zipfile.ZIP_STORED), None)
        if packed is not None:
            raise self.bad(f"entry {packed.filename[:80]!r} is compressed, which no export is")

    def written(self) -> bytes:
        model = self._model()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:

            def put(name: str, data: bytes | str) -> None:
                # The reader wants its records aligned only where it maps them, which it does not.
                out.writestr(zipfile.ZipInfo(f"{ROOT}/{name}"), data)

            for name in HEADER:
                if name in self.files:
                    put(name, self._bytes(name, 1000))
            put("models/model.json", json.dumps(model))
            put("data/sample_inputs/model.pt", _no_sample_inputs())
            for folder in CONFIGS:
                self._copy_payload(folder, put)
        return buffer.getvalue()

    def _copy_payload(self, folder: str, put: Callable[[str, bytes | str], None]) -> None:
        """Tensors as raw bytes; `use_pickle` and custom objects are refused."""
        config = self._json(folder + CONFIGS[folder])
        entries = config.get("config") if isinstance(config, dict) else None
        if not isinstance(entries, dict):
            raise self.bad(f"{folder}{CONFIGS[folder]} lists no tensors")
        seen = set()
        for label, entry in entries.items():
            file = entry.get("path_name") if isinstance(entry, dict) else None
            if not _PATH.fullmatch(label) or not isinstance(file, str):
                raise self.bad(f"{label[:80]!r} in {folder} is no tensor")
            if entry.get("use_pickle") is not False or not _PAYLOAD[folder].fullmatch(file):
                raise self.bad(
                    f"{label[:80]!r} is stored as a Python object, which may run code", "tensors"
                )
            for key, value in _walk(entry.get("tensor_meta")):
                self._check_value(key, value)
            if file not in seen:
                seen.add(file)
                put(folder + file, self._bytes(folder + file))
        put(folder + CONFIGS[folder], json.dumps({"config": entries}))

    def _model(self) -> dict[str, Any]:
        """The graph, with everything left out that only people read."""
        models = [name for name in self.files if name.startswith("models/")]
        if models != ["models/model.json"]:
            raise self.bad(f"it holds {len(models)} models")
        model = self._json("models/model.json")
        try:
            graph, calls = model["graph_module"]["graph"], model["graph_module"]
            if model["range_constraints"]:
                raise self.bad("its sizes vary", "fixed sizes (no dynamic_shapes)")
            for node in [*graph["nodes"]]:
                self._check_node(node)
            for name in graph["tensor_values"]:
                self._check_name(name)
            self._check_signature(calls["signature"])
            self._check_trees(calls["module_call_graph"])
            for key, value in _walk([graph, calls["signature"], calls["module_call_graph"]]):
                self._check_value(key, value)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise self.bad(f"models/model.json is not understood ({error!r:.100})") from None
        if calls.get("treespec_namedtuple_fields"):
            raise self.bad("it takes or gives named tuples", "plain tuples, lists and dicts")
        calls["metadata"] = {}
        model["guards_code"] = []
        return dict(model)

    def _check_node(self, node: dict[str, Any]) -> None:
        target = node["target"]
        found = _TARGET.fullmatch(target) if isinstance(target, str) else None
        if found is None or found[1] in _FORBIDDEN:
            raise self.bad(f"it calls {str(target)[:80]!r}", "PyTorch's own operators only")
        if node.get("name") is not None:
            self._check_name(node["name"])
        for entry in node["inputs"]:
            self._check_name(entry["name"], allowed_keywords=True)
        stack = node["metadata"].get("nn_module_stack", "")
        keep = isinstance(stack, str) and _STACK.fullmatch(stack)
        node["metadata"] = {"nn_module_stack": stack} if keep and stack else {}

    def _check_signature(self, signature: dict[str, Any]) -> None:
        for key, value in _walk(signature):
            if key in ("parameter_name", "buffer_name", "tensor_constant_name"):
                if not isinstance(value, str) or not _PATH.fullmatch(value):
                    raise self.bad(f"it has a weight called {str(value)[:80]!r}")
            elif key == "name":
                self._check_name(value)

    def _check_trees(self, calls: list[dict[str, Any]]) -> None:
        """How inputs and outputs are nested: tuples, lists and dicts, and no types of others."""
        for call in calls:
            signature = call.get("signature")
            if signature is None:
                continue
            for name in signature.get("forward_arg_names") or ():
                self._check_name(name)
            for key in ("in_spec", "out_spec"):
                if signature.get(key):
                    tree = parse_json(signature[key], self._name)
                    for inner, value in _walk(tree):
                        if inner == "type" and value not in _TREES:
                            raise self.bad(
                                f"it takes or gives a {str(value)[:80]}",
                                "plain tuples, lists and dicts",
                            )

    def _check_value(self, key: str, value: Any) -> None:
        if key.startswith(_VARYING):
            raise self.bad("its sizes vary", "fixed sizes (no dynamic_shapes)")
        if key.startswith(_FOREIGN):
            raise self.bad("it has objects of Python or branches of its own", "tensors only")
        if key in _NAMED:
            for inner, name in _walk(value):
                if inner == "name":
                    self._check_name(name)
        if key == "device" and isinstance(value, dict) and value.get("type") != "cpu":
            raise self.bad(f"it was exported on {str(value.get('type'))[:20]}", "cpu tensors")
        if key == "as_device" and value.get("type") != "cpu":
            raise self.bad(f"it was exported on {str(value.get('type'))[:20]}", "cpu tensors")

    def _check_name(self, name: Any, allowed_keywords: bool = False) -> None:
        good = isinstance(name, str) and (_IDENTIFIER.fullmatch(name) or name == "")
        if not good or (keyword.iskeyword(name) and not allowed_keywords):
            raise self.bad(f"it has a value called {str(name)[:80]!r}")

    def _json(self, name: str) -> Any:
        return parse_json(self._bytes(name, MAX_JSON_BYTES), f"{self._name}: {name}")

    def _bytes(self, name: str, most: int | None = None) -> bytes:
        entry = self.files.get(name)
        if entry is None:
            raise self.bad(f"it has no {name}")
        if most is not None and entry.file_size > most:
            raise self.bad(f"{name} has {entry.file_size} bytes, more than {most}")
        return self._archive.read(entry)

    def bad(self, what: str, instead: str = "") -> ValueError:
        how = f" of {instead}" if instead else ""
        return ValueError(
            f"{self._name!r} cannot be opened: {what}; export it again{how} with"
            " torch.export.save(torch.export.export(module.eval(), inputs), path)."
        )


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every (key, value) of nested JSON."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            for key, inner in found.items():
                yield str(key), inner
                waiting.append(inner)
        elif isinstance(found, list):
            waiting.extend(found)


def _no_sample_inputs() -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(((), {}), buffer)
    return buffer.getvalue()
