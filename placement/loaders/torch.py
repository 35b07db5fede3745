"""PyTorch programs: .pt2 archives of torch.export; pickled .pt and .pth files are refused."""

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from placement.core.model import Model
from placement.loaders._files import refuse_dims

PICKLES = (".pt", ".pth", ".pkl", ".ckpt")
MAX_BYTES = 16 * 2**30


@dataclass(frozen=True)
class TorchLoader:
    """Reads what torch.export.save wrote, through a clean copy."""

    name: str = "torch"
    summary: str = "a PyTorch program (.pt2, from torch.export.save)"
    suffixes: tuple[str, ...] = (".pt2", *PICKLES)
    refused: tuple[str, ...] = PICKLES

    def accepts(self, path: Path) -> bool:
        return True

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        refuse_dims(dims, path)
        if path.suffix.lower() in PICKLES:
            raise ValueError(
                f"{path.name!r} is a pickle, which can run any code when it is opened; export the"
                " module instead: torch.export.save(torch.export.export(module.eval(), inputs),"
                " 'model.pt2')."
            )
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path.name!r} is larger than {MAX_BYTES} bytes; use a smaller one.")
        from placement.loaders._pt2_copy import clean_copy

        content = clean_copy(path)
        return _opened(content, path.name, path.stem)


def _opened(content: bytes, name: str, stem: str) -> Model:
    import torch

    from placement.loaders._torch_allowed import foreign_call
    from placement.loaders._torch_export import program_of
    from placement.loaders._torch_graph import graph_of

    with warnings.catch_warnings():
        # Of the library about itself.
        warnings.simplefilter("ignore")
        try:
            exported = torch.export.load(io.BytesIO(content))
        except Exception as error:  # it raises many kinds, for many reasons
            raise _unreadable(name, error) from None
        foreign = foreign_call(exported.graph)
        if foreign:
            raise ValueError(
                f"{name!r} cannot be opened: it calls {foreign}, which is not among the operators"
                " that a file may call; use others in the module."
            )
        try:
            program = program_of(exported, stem)
            return Model(graph_of(program), program)
        except (RuntimeError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> ValueError:
    import torch

    text = " ".join(str(error).split())[:200]
    return ValueError(
        f"{name!r} cannot be opened by PyTorch {torch.__version__} ({text}); export it again"
        " with this version."
    )


LOADER = TorchLoader()
