"""From names to paths: what node names and weight names say about blocks."""

import re
from collections.abc import Sequence
from functools import lru_cache

Path = tuple[str, ...]

_PARAMETER = re.compile(
    r"(^|_)(w|b|s|rm|riv|weight|weights|bias|biases|kernel|scale|gamma|beta|mean|var|variance"
    r"|running_mean|running_var|moving_mean|moving_variance|embedding|embeddings"
    r"|(bn|bn_sc|sc)_(scale|bias|mean|var|w|b))(_v?\d+)?$",
    re.IGNORECASE,
)
_NORM = re.compile(r"(_bn|^bn|^sc|_spatbn)(_\d+)?$")
_GENERIC = re.compile(
    r"([a-z]|node|op|onnx|val|value|tensor|param|parameter|const|constant|initializer|weight|var|arg)?"
    r"_?\d*",
    re.IGNORECASE,
)
MAX_DEPTH = 12


def weight_path(name: str) -> Path | None:
    """The block that a weight belongs to, None where the name does not say.

    "inception_3a/1x1_b_0" gives ("inception_3a", "1x1"), "layer1.0.conv1.weight" gives
    ("layer1", "0", "conv1"), "onnx::Conv_497" nothing.
    """
    if "::" in name:
        return None
    parts = [part for part in re.split(r"[/.]", name.split(":")[0]) if part]
    while parts and (found := _PARAMETER.search(parts[-1])):
        parts[-1] = parts[-1][: found.start()]
        if parts[-1]:
            break
        parts.pop()
    while parts and (found := _NORM.search(parts[-1])):
        parts[-1] = parts[-1][: found.start()]
        if not parts[-1]:
            parts.pop()
    return None if all(map(_GENERIC.fullmatch, parts)) else _checked(parts)


def node_path(name: str) -> Path | None:
    """The block that a node's name puts it in, None where the name has no path.

    "/layer1/layer1.0/conv1/Conv" gives ("layer1", "0", "conv1"), "Conv_12" nothing.
    """
    return _folder_path(name.rstrip("/").rpartition("/")[0])


@lru_cache(4096)
def _folder_path(folder: str) -> Path | None:
    parts: list[str] = []
    for part in [part for part in folder.split("/") if part]:
        # PyTorch repeats the parent's name inside a list of modules: layer1/layer1.0.
        if parts and part.startswith(f"{parts[-1]}."):
            part = part[len(parts[-1]) + 1 :]
        parts += [piece for piece in part.split(".") if piece]
    return _checked(parts)


def module_path(scopes: Sequence[str]) -> Path | None:
    """From PyTorch's list of enclosing modules, outermost first, the op itself last:
    ("", "layer1", "layer1.0", "layer1.0.conv1", "conv2d_3") gives ("layer1", "0", "conv1")."""
    if len(scopes) < 2:
        return None
    return _checked([piece for piece in scopes[-2].split(".") if piece])


def tidy(labels: Sequence[Path | None]) -> list[Path | None]:
    """Labels without what all of them share in front, and with numbered parts as levels:
    ("res2_0_branch2a",) becomes ("res2", "0", "branch2a"), "inception_3a" stays."""
    present = [label for label in labels if label is not None]
    distinct = set(present)
    shared = 0
    while len(distinct) > 1 and len({label[: shared + 1] for label in distinct}) == 1:
        shared += 1
    # A label that is no more than what all share stands at the top and says nothing.
    cut = [None if label is None else label[shared:] or None for label in labels]
    return [None if label is None else (*_levels(label[0]), *label[1:]) for label in cut]


def _levels(part: str) -> list[str]:
    """Split behind a word that ends in a digit: conv1_1 into conv1 and 1."""
    levels = [""]
    for piece in part.split("_"):
        if re.fullmatch(r".*\d", levels[-1]) and re.search(r"[A-Za-z]", levels[0]) and piece:
            levels.append(piece)
        else:
            levels[-1] = f"{levels[-1]}_{piece}" if levels[-1] else piece
    return [level for level in levels if level] or [part]


def _checked(parts: list[str]) -> Path | None:
    clean = [" ".join(part.split()) for part in parts[:MAX_DEPTH]]
    clean = [part for part in clean if part]
    return None if all(part.isdigit() for part in clean) else tuple(clean)
