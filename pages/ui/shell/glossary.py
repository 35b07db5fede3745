"""Words for people: explanations of the field's terms, and names made safe to show."""

import re

from placement.core.objective import Objective
from placement.core.verb_options import RunOptions, StreamOptions, option_of


def sentence(text: str) -> str:
    """What begins small and has no end, as an option's help, as a sentence."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


LANE = (
    "A lane is a part of the CPU with cores of its own, used as if it were a separate device. With"
    " two lanes two parts of the network can compute at the same time."
)
RANGE = (
    "Of ten placements nine are measured within their range: kernels scatter, and a hand-over may"
    " take longer than predicted. Placements that differ by less than that are a tie."
)
DRIFT = (
    "Computers drift: others take a share of the last cache, or the clock sinks with the heat. The"
    " model alone on each device, timed right after the run, says by how much; the rest of the"
    " difference is an error of the prediction. Measure the model again to predict for now."
)
DIFFERENCE = (
    "For each segment what was predicted and measured, with what it waited once all that it reads"
    " was made. What it explains is by how much the predicted step changes when this segment alone"
    " takes what was measured; off the critical path that is nothing."
)
REFINEMENT = (
    "Lets what the segments of this run took correct the stored times of this model's kernels and"
    " hand-overs. What several segments show is believed more than what one does. Once two"
    " placements have run, each is predicted by the runs of the others, and where that makes"
    " nothing better, nothing is changed."
)
SEGMENT = (
    "A segment is a run of neighbouring ops on one device, handed to the runtime in one call. Each"
    " change of device starts a new one."
)
CRITICAL = (
    "The critical path is the chain of computing, sending and waiting that decides how long a step"
    " takes. Making anything else faster does not help."
)
IN_PART = (
    "In part: some of these ops are on this device, and others elsewhere. The time is what all of"
    " them together would take there."
)
AUTO = (
    "The method auto tries quick methods at once, then improves the best of them until the time"
    " limit, and tells how far from the best possible its answer can be. It uses the whole"
    " computer, so it waits while something is being measured."
)
STEP = sentence(option_of(RunOptions, "steps").help)
SAMPLE = sentence(option_of(StreamOptions, "samples").help)
THROUGHPUT = (
    "Outputs per second while the pipeline is full; samples that fill and empty it do not count."
)
BETWEEN = (
    "How long after one output the next one comes. In a full pipeline this is the time that the"
    " busiest device needs for one sample."
)
LATENCY = (
    "How long one sample takes from its inputs to its outputs. In a full pipeline it waits for"
    " those ahead of it, so this is longer than the shortest step."
)
# By goal: its value, what that is, what a lever saves, what a run times, where a timeline begins,
# and what one simulated step is where steps overlap.
VALUE = {Objective.LATENCY: "step time", Objective.THROUGHPUT: "time per sample"}
VALUE_HELP = {Objective.LATENCY: STEP, Objective.THROUGHPUT: BETWEEN}
SAVED = {Objective.LATENCY: "step", Objective.THROUGHPUT: "time per sample"}
TIMED = {Objective.LATENCY: "step", Objective.THROUGHPUT: "output"}
BEGINNING = {Objective.LATENCY: "the step", Objective.THROUGHPUT: "the first sample"}
ALONE = {Objective.LATENCY: "", Objective.THROUGHPUT: "one sample alone"}
PACE = (
    "The share of the time that a device spends on samples. The busiest one is the bottleneck: it"
    " sets the pace, and only less work for it makes the pipeline faster. A prediction counts"
    " sending and receiving too."
)
STAGES = (
    "A stage is the work that a device does on one sample before another device goes on with it."
    " Each stage works on another sample."
)
BOUND = "No placement at all can be faster than this, whatever method finds it."
ESTIMATED_BOUND = (
    "By these estimates no placement at all can be faster, whatever method finds it. A run can, for"
    " what it measures is not what the formula says."
)
OPTIMUM = (
    "All values are predicted. The optimum is the best that any placement could reach; nobody knows"
    " it, but it is proven not to be further away than this."
)
HINTS = (
    "Predicted, each move as if it were the only one. Moving an op here is the same as moving it by"
    " hand: it can be undone, and a method's placement is copied first."
)
MANY_MOVES = (
    "On a model of this size not all moves are looked at: those of ops on the critical path and of"
    " blocks come first, and the best of them are worked out to the end."
)
EQUAL = (
    "Devices are equal where memory, links and the times of all ops are the same and no pin tells"
    " them apart. Which of them has which part makes no difference, so it is not counted as one."
)
TOKENS = (
    "A prefill takes in the tokens of a prompt; its step is the time to the first token. A decode"
    " adds one token to each sequence. What earlier tokens left behind, the cache, lies where its"
    " layers are, counts in the memory there and is read whole by every decode. By the roofline a"
    " kernel waits to be launched, and then for arithmetic or for what it reads and writes."
)
ESTIMATE = (
    "These times come from a formula (arithmetic and memory traffic against the device's nominal"
    " speed), not from this machine. Measure on the Devices page to replace them."
)
LIBRARY = "Ops that the runtime fuses into one kernel always move together."
EMULATED = (
    "This machine is not here: its times are computed, and a run follows a virtual clock instead of"
    " hardware."
)

WEIGHTLESS = (
    "No weights: predicted only. This is a configuration: the shapes of a network without its"
    " numbers. It is placed, predicted, compared and exported, and neither measured nor run."
)

ABSENT = "This machine has devices that are not on this computer, so nothing can be measured on it."

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~<>$:^&-])")
# Addresses become links after backslashes are read; only something in between keeps them apart.
_ADDRESS = re.compile(r"(https?:(?=//[-\w]*\.)|www(?=\.))", re.IGNORECASE)
_NO_SPACE = "\u200b"


def plain(text: str, longest: int = 400) -> str:
    """Text from a file or a library so that Markdown shows it letter by letter."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    apart = _ADDRESS.sub(rf"\1{_NO_SPACE}", " ".join(short.split()))
    return _MARKUP.sub(r"\\\1", apart)


def provider(name: str) -> str:
    """An execution provider's name without the ending that they all share."""
    return name.removesuffix("ExecutionProvider") or name
