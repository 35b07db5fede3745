"""What blocks found from structure are called: by what is in them, in order, and by whose they are.

"conv", "inception 2" and "attention 3" say what a block does and which one of these it is; a branch
has the name of the model's input that it alone reads, or of the output that it alone makes. Many
blocks in a row are gathered in stages of the same resolution.
"""

import re
from collections import Counter
from collections.abc import Sequence

from placement.formats.scopes.structure import FLAT, MAX_BLOCKS, Part, Path, ScopeNode, parts_of

_RECURRENT = {"LSTM", "GRU", "RNN"}
_UP = {"ConvTranspose", "Resize", "Upsample"}
_CONVOLUTIONS = {"Conv", "ConvInteger", "QLinearConv", "DeformConv"}
_MATRICES = {"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum"}
_SUMS = {"Add", "Sum"}
# Convolutions on fewer ways side by side than these are a concat.
LEAST_INCEPTION_WAYS = 3
_ATTENTION = {"Attention", "MultiHeadAttention", "GroupQueryAttention"}
# A letter, a word that says nothing, or a number, as names of inputs and outputs are.
_GENERIC = re.compile(
    r"([a-z]|input|output|in|out|data|tensor|onnx|value|val|arg)?s?[_.:]*\d*", re.I
)


def structural_scopes(nodes: Sequence[ScopeNode]) -> list[Path]:
    """A path for every op; nodes are in topological order. Small graphs stay flat."""
    paths: list[Path] = [()] * len(nodes)
    if len(nodes) > FLAT:
        _name(nodes, parts_of(nodes), (), paths)
    return paths


def _name(
    nodes: Sequence[ScopeNode], parts: Sequence[Part], around: Path, paths: list[Path]
) -> None:
    """Set the paths of all ops of some parts that lie in the block `around`."""
    for stage, members in _in_stages(nodes, [part for part in parts if not part.is_loose]):
        for part, called in zip(members, _called(nodes, members), strict=True):
            path = (*around, *stage, called)
            for i in part.ops:
                paths[i] = path
            _name(nodes, part.inside, path, paths)
    for i in (i for part in parts if part.is_loose for i in part.ops):
        paths[i] = around


def _in_stages(
    nodes: Sequence[ScopeNode], parts: Sequence[Part]
) -> list[tuple[Path, Sequence[Part]]]:
    """Parts by the stage that they are in, of which a few need none."""
    if len(parts) <= MAX_BLOCKS:
        return [((), parts)]
    stages: list[list[Part]] = []
    last: tuple[int, ...] | None = None
    for part in parts:
        spatial = nodes[max(part.all_ops())].spatial
        if last is None or spatial != last:
            stages.append([])
        stages[-1].append(part)
        last = spatial
    if len(stages) < 2 or len(stages) > MAX_BLOCKS:
        size = -(-len(parts) // MAX_BLOCKS)
        stages = [list(parts[k : k + size]) for k in range(0, len(parts), size)]
    return [((f"stage{s + 1}",), stage) for s, stage in enumerate(stages)]


def _called(nodes: Sequence[ScopeNode], parts: Sequence[Part]) -> list[str]:
    """A name for each of some parts beside each other."""
    takes = Counter(name for part in parts for name in set(_takes(nodes, part)))
    gives = Counter(name for part in parts for name in set(_gives(nodes, part)))
    said = []
    for part in parts:
        own = _telling(_takes(nodes, part), takes) or _telling(_gives(nodes, part), gives)
        word = _word(nodes, part)
        word = f"{word} branch" if part.is_branch and part.inside else word
        said.append(own if part.is_branch and own else word)
    many, found = Counter(said), list[str]()
    for word in said:
        number, called = 1, f"{word}1" if many[word] > 1 else word
        while called in found:
            number, called = number + 1, f"{word}{number + 1}"
        found.append(called)
    return found


def _takes(nodes: Sequence[ScopeNode], part: Part) -> list[str]:
    return [name for i in part.all_ops() for name in nodes[i].takes]


def _gives(nodes: Sequence[ScopeNode], part: Part) -> list[str]:
    return [name for i in part.all_ops() for name in nodes[i].gives]


def _telling(names: Sequence[str], shared: Counter[str]) -> str:
    """The only name of some that no other part has, if it says anything."""
    own = [name for name in dict.fromkeys(names) if shared[name] == 1]
    is_telling = len(own) == 1 and not _GENERIC.fullmatch(own[0])
    return " ".join(own[0].replace("/", " ").split()) if is_telling else ""


def _word(nodes: Sequence[ScopeNode], part: Part) -> str:
    """What a part is, in a word: by its products, and by what meets inside it.

    Convolutions side by side whose results a Concat puts together are an inception block (Szegedy
    et al., CVPR 2015); where it only puts new channels beside old ones, it is all there is to say.
    """
    ops = [*part.all_ops()]
    own = set(ops)
    kinds = Counter(nodes[i].kind for i in ops)
    products = {nodes[i].kind for i in ops if nodes[i].is_product}
    # An op that takes over from blocks before begins one, and joins nothing of it.
    joins = [i for i in ops if len(set(nodes[i].before)) > 1 and own & set(nodes[i].before)]
    has_sum = any(nodes[i].kind in _SUMS for i in joins)
    concats = [i for i in joins if nodes[i].kind == "Concat"]
    if kinds.keys() & _RECURRENT:
        return next(kind for kind in kinds if kind in _RECURRENT).lower()
    if kinds.keys() & _ATTENTION or (kinds["Softmax"] and kinds["MatMul"] > 1):
        return "attention"
    if kinds.keys() & _UP:
        return "up"
    if products & _CONVOLUTIONS:
        is_wide = any(_num_ways(nodes, i, own) >= LEAST_INCEPTION_WAYS for i in concats)
        joined = "inception" if is_wide else "concat" if concats else "conv"
        return "residual" if has_sum else joined
    if products & _MATRICES:
        return "mlp" if has_sum else "dense"
    if "Gather" in products:
        return "embedding"
    return min(kinds, key=lambda kind: (-kinds[kind], kind)).lower()


def _num_ways(nodes: Sequence[ScopeNode], join: int, own: set[int]) -> int:
    """How many ways with ops of their own, two with products at least, lead to an op; else none.

    What several of its inputs have behind them within the block is on no single way.
    """
    ways = []
    for i in set(nodes[join].before) & own:
        found, waiting = {i}, [i]
        while waiting:
            before = [j for j in nodes[waiting.pop()].before if j in own and j not in found]
            found.update(before)
            waiting += before
        ways.append(found)
    shared = Counter(i for way in ways for i in way)
    alone = [[i for i in way if shared[i] == 1] for way in ways]
    with_products = sum(any(nodes[i].is_product for i in way) for way in alone)
    return sum(map(bool, alone)) if with_products > 1 else 0
