"""PyTorch programs: .pt2 archives of torch.export; pickled .pt and .pth files are refused."""

import warnings
from collections.abc import Mapping
from pathlib import Path

from placement.core.model import Model
from placement.files.input import refuse_dims
from placement.formats.torch.pt2.archive import Archive, Refused, bad, opened
from placement.loaders.base import Loader

PICKLES = (".pt", ".pth", ".pkl", ".ckpt")
MAX_BYTES = 16 * 2**30


class TorchLoader(Loader):
    """Reads what torch.export.save wrote, value by value."""

    name = "torch"
    summary = "a PyTorch program (.pt2, from torch.export.save)"
    suffixes = (".pt2", *PICKLES)
    refused = PICKLES

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
        with opened(path) as archive:
            return _model(archive, path.stem)


def _model(archive: Archive, name: str) -> Model:
    from placement.formats.torch.export import program_of
    from placement.formats.torch.graph import graph_of
    from placement.formats.torch.pt2.inferred import require_safe_graph
    from placement.formats.torch.pt2.program import exported_program

    with warnings.catch_warnings():
        # Of the library about itself.
        warnings.simplefilter("ignore")
        try:
            program = program_of(exported_program(archive), name)
        except (Refused, ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise
        except Exception as error:  # the library raises many kinds, for many reasons
            text = " ".join(str(error).split())[:200]
            raise bad(f"PyTorch does not understand it ({text})") from None
        require_safe_graph(program.graph)
        return Model(graph_of(program), program)


LOADER = TorchLoader()
