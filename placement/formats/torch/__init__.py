"""PyTorch programs: exported or traced, made functional, as graphs and as source."""

from placement.formats.torch.large_pages import ask

# PyTorch looks once, at its first block, which whatever is opened here makes.
ask()
