"""Groups of ops while the scope tree is being built: simplified, stacked, and split when large."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from placement.core.graph import Graph

# Where a word of a name ends, behind what parts it from the next.
_WORD_END = re.compile(r"(?<=[\W_])")
# A number, or the first and last one of a stack, at the beginning of a block's path.
_NUMBER = re.compile(r"\d+(?:–\d+)?(?:/|$)")
MAX_MEMBERS = 400
LEAST_STACK = 3
LEAST_CONSTANTS = 4


@dataclass
class Draft:
    """A group while the tree is being built; members are op indices or drafts."""

    label: str
    path: str
    members: "list[int | Draft]" = field(default_factory=list)
    by_name: "dict[str, Draft]" = field(default_factory=dict)
    num_ops: int = 0
    signature: int = 0
    stack: int = 0
    tucked: bool = False


def simplify(draft: Draft) -> None:
    members: list[int | Draft] = []
    for member in draft.members:
        if isinstance(member, Draft):
            simplify(member)
            only = member.members[0] if len(member.members) == 1 else None
            if isinstance(only, Draft):
                only.label = f"{member.label}/{only.label}"
                member = only
            elif only is not None:
                member = only
        members.append(member)
    while len(members) == 1 and isinstance(members[0], Draft) and not draft.path:
        members = members[0].members
    draft.members = members


def constants_of(graph: Graph) -> frozenset[int]:
    """Ops that read nothing and cost nothing, made for the ops that read them."""
    reads = {name for tensor in graph.tensors for name in tensor.consumers}
    return frozenset(
        i
        for i, op in enumerate(graph.ops)
        if not op.flops and not op.param_bytes and op.name not in reads and graph.successors[i]
    )


def tuck_constants(draft: Draft, constants: frozenset[int]) -> None:
    """Put the constants of each scope into one group, where there are several beside other ops."""
    for member in draft.members:
        if isinstance(member, Draft):
            tuck_constants(member, constants)
    found = [m for m in draft.members if isinstance(m, int) and m in constants]
    if LEAST_CONSTANTS <= len(found) < len(draft.members):
        group = Draft("constants", _joined(draft.path, "constants"), list(found), tucked=True)
        chosen = set(found)
        others = [m for m in draft.members if isinstance(m, Draft) or m not in chosen]
        draft.members = [group, *others]


def stack(draft: Draft, graph: Graph) -> None:
    """Put blocks of one structure, each of which feeds the next, into a group of their own.

    A scope that holds nothing but such blocks is the stack itself.
    """
    for member in draft.members:
        if isinstance(member, Draft):
            stack(member, graph)
    members: list[int | Draft] = []
    for run in _runs(draft.members, graph):
        blocks = [m for m in run if isinstance(m, Draft)]
        if len(blocks) < LEAST_STACK:
            members.extend(run)
        elif len(blocks) == len(draft.members):
            draft.stack = len(blocks)
            return
        else:
            label = _run_label(blocks[0].label, blocks[-1].label)
            path = _joined(draft.path, label)
            members.append(Draft(label, path, list(run), stack=len(run)))
    draft.members = members


def _runs(members: "list[int | Draft]", graph: Graph) -> "Iterator[list[int | Draft]]":
    """Members cut into runs: equal blocks in a chain together, all else one by one."""
    run: list[int | Draft] = []
    for member in members:
        before = run[-1] if run else None
        if not (
            isinstance(before, Draft)
            and isinstance(member, Draft)
            and before.signature == member.signature
            and before.num_ops > 1
            and _feeds(before, member, graph)
        ):
            if run:
                yield run
            run = []
        run.append(member)
    if run:
        yield run


def _feeds(first: Draft, second: Draft, graph: Graph) -> bool:
    readers = set(_ops_in(second))
    return any(not readers.isdisjoint(graph.successors[i]) for i in _ops_in(first))


def _ops_in(draft: Draft) -> Iterator[int]:
    for member in draft.members:
        if isinstance(member, Draft):
            yield from _ops_in(member)
        else:
            yield member


def _run_label(first: str, last: str) -> str:
    """What a stack is called: by the first and last number where only these tell blocks apart.

    Of other names the words that both begin with are said once: "inception_4a … 4d".
    """
    head, other = (text.rstrip("0123456789") for text in (first, last))
    if head == other and len(head) < min(len(first), len(last)):
        return f"{first}–{last[len(head) :]}"
    said, words = _WORD_END.split(first), _WORD_END.split(last)
    while said[0] == words[0] and said[1:] and any(words[1:]):
        said, words = said[1:], words[1:]
    return f"{first} … {''.join(words)}"


def name_numbers(draft: Draft, around: str = "") -> None:
    """Give blocks that are called by a number alone the name of the scope around: "features/0".

    Stacks and ranges were made here; a block inside has the name of the scope around these.
    """
    for member in draft.members:
        if not isinstance(member, Draft):
            continue
        made = "–" in member.label or "…" in member.label
        name = member.label.rpartition("/")[2]
        if around and _NUMBER.match(member.label):
            name = member.label = f"{around}/{member.label}"
        name_numbers(member, around if made else name)


def _joined(path: str, label: str) -> str:
    return f"{path}/{label}" if path else label


def split(draft: Draft) -> None:
    """Give every scope with too many members a layer of ranges."""
    for member in draft.members:
        if isinstance(member, Draft):
            split(member)
    draft.members = _chunked(draft.members, draft.path)


def _chunked(members: list[int | Draft], path: str) -> list[int | Draft]:
    """Members in a few even ranges, about as many ranges as members in each."""
    if len(members) <= MAX_MEMBERS:
        return members
    size = min(MAX_MEMBERS, math.ceil(math.sqrt(len(members))))
    ranges: list[int | Draft] = []
    for start in range(0, len(members), size):
        part = members[start : start + size]
        label = f"… {start + 1}–{start + len(part)}"
        ranges.append(Draft(label, _joined(path, label), part))
    return _chunked(ranges, path)


def measure(draft: Draft, kinds: Sequence[str], known: dict[tuple[object, ...], int]) -> None:
    """Count ops, and give groups one number whose members are of one kind after the other."""
    shape: list[object] = []
    draft.num_ops = 0
    for member in draft.members:
        if isinstance(member, Draft):
            measure(member, kinds, known)
            draft.num_ops += member.num_ops
            shape.append(member.signature)
        else:
            draft.num_ops += 1
            shape.append(kinds[member])
    draft.signature = known.setdefault(tuple(shape), len(known))
