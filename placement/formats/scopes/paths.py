"""Scopes: the slash path of blocks that each op belongs to, from whatever a file tells.

First choice is what people wrote, names of nodes; then names of weights, which exporters keep when
they number the nodes ("inception_3a/1x1_b_0" on node n12); then the structure of the graph. Names
are only believed where they fit the graph: groups that wait for each other in a circle are no
blocks, and neither are hundreds of them. Above all: what one name says by itself.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from placement.formats.scopes.inherit import inherit
from placement.formats.scopes.naming import structural_scopes
from placement.formats.scopes.structure import ScopeNode

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


MAX_TOP_GROUPS = 40
MAX_IN_CIRCLES = 0.2  # of all ops


def scopes(nodes: Sequence[ScopeNode], *, by_name: bool = False) -> list[str]:
    """One slash path per op, empty for the top; nodes are in topological order.

    Where labels are `by_name` of the ops themselves, each of them is believed; from names of
    weights those of products are. Ops that call themselves part of a block are so even where it
    waits for itself, as one that is used twice, as long as few ops say nothing.
    """
    labels = tidy([node.label for node in nodes])
    found: list[tuple[str, ...]] | None = None
    if sum(label is not None for label in labels) > 0:
        believed = [replace(node, is_product=True) for node in nodes] if by_name else nodes
        found = inherit(believed, labels)
        if not _are_blocks(found) or _circles(nodes, found) > MAX_IN_CIRCLES * len(nodes):
            said = [label or () for label in labels]
            few_loose = labels.count(None) <= MAX_TOP_GROUPS
            found = said if by_name and few_loose and _are_blocks(said) else None
    if found is None:
        found = structural_scopes(nodes)
    return ["/".join(path) for path in tidy_paths(found)]


def tidy_paths(paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without levels that have a single child and no ops of their own; the telling name stays."""
    children: dict[tuple[str, ...], set[str]] = {}
    own = set(paths)
    for path in own:
        for depth in range(len(path)):
            children.setdefault(path[:depth], set()).add(path[depth])
    leaves = {path for path in own if len(path) == 1 and len(children.get(path, ())) == 1}
    renamed: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    holder: dict[tuple[str, ...], tuple[str, ...]] = {}
    prefixes = {path[:depth] for path in own for depth in range(1, len(path) + 1)}
    for _, level in groupby(sorted(prefixes, key=lambda p: (len(p), p)), key=len):
        wanted = {}
        for path in level:
            parent = path[:-1]
            above = renamed[parent]
            only = len(children[parent]) == 1 and (parent not in own or parent in leaves)
            if only and parent:
                wanted[path] = (*above[:-1], max(above[-1], path[-1], key=_letters))
            else:
                wanted[path] = (*above, path[-1])
        number = Counter(wanted.values())
        for path, name in wanted.items():
            # Blocks that all have one part of the same name would become one: both names stay.
            if number[name] > 1 or holder.get(name, path[:-1]) != path[:-1]:
                name = (*name[:-1], f"{renamed[path[:-1]][-1]}.{path[-1]}")
            renamed[path] = name
            holder[name] = path
    # A parent with ops of its own takes the name that it and its only child agreed on.
    for path in sorted(leaves):
        child = (*path, next(iter(children[path])))
        renamed[path] = renamed[child]
    return [renamed[path] for path in paths]


def _letters(name: str) -> int:
    """Length of the longest run of letters."""
    return max(map(len, "".join(c if c.isalpha() else " " for c in name).split()), default=0)


def _are_blocks(found: Sequence[tuple[str, ...]]) -> bool:
    """Whether groups at the top are neither none, nor all in one, nor hundreds."""
    num_groups = len({path[0] for path in found if path})
    if not num_groups or (num_groups > MAX_TOP_GROUPS and len(found) > 2 * MAX_TOP_GROUPS):
        return False
    return num_groups > 1 or len(found) <= MAX_TOP_GROUPS


def _circles(nodes: Sequence[ScopeNode], found: Sequence[tuple[str, ...]]) -> int:
    """Number of ops in groups that, directly or not, both feed and read another group."""
    tops = [path[0] if path else "" for path in found]
    after: dict[str, set[str]] = {top: set() for top in tops}
    for i, node in enumerate(nodes):
        for j in node.before:
            if tops[i] != tops[j] and tops[i] and tops[j]:
                after[tops[j]].add(tops[i])
    circular = {top for top in after if _is_in_circle(top, after)}
    return sum(top in circular for top in tops)


def _is_in_circle(start: str, after: dict[str, set[str]]) -> bool:
    """Whether one gets back to a group by way of those that read from it."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = after[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return start in found
