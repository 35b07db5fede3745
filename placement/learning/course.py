"""What a sequential policy knows of a problem before it decides, and the size of its network."""

from typing import NamedTuple

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Bools

NUM_FEATURES, NUM_HIDDEN = 28, 16
# Each hidden number from all features, the score from the hidden numbers and from the features.
NUM_WEIGHTS = NUM_HIDDEN * NUM_FEATURES + NUM_HIDDEN + NUM_FEATURES


class Course(NamedTuple):
    """Units (U) in the order of their decisions, nets (N) of bytes between them, devices (D).

    `work_s` (U, D) holds compute with the calls that every placement pays, infinite where a device
    may not hold the unit; `call_s` (D,) is paid where inputs cross. `maker` (N,) is -1 for what
    starts on the host. Nets that a unit reads and makes, and readers of a net, are CSR rows.
    `rank_s` and `depth_s` (U,) are the longest paths to the end and from the start by means,
    `outlook_s` (U, D) the optimistic cost table of PEFT. `whole_s` is what a step takes at least,
    about; `alone_s` (D,) what each device takes by itself, and `speed` (D,) how fast it is beside
    the fastest, on average over the units.
    """

    order: Ints
    work_s: Floats
    mean_s: Floats
    call_s: Floats
    allowed: Bools
    size_bytes: Floats
    limit_bytes: Floats
    move_s: Floats
    s_per_byte: Floats
    one_at_a_time: bool
    on_host: Bools
    host: int
    maker: Ints
    net_bytes: Floats
    net_s: Floats
    in_ptr: Ints
    in_nets: Ints
    out_ptr: Ints
    out_nets: Ints
    reader_ptr: Ints
    readers: Ints
    rank_s: Floats
    depth_s: Floats
    outlook_s: Floats
    alone_s: Floats
    speed: Floats
    whole_s: float
    by_load: bool
