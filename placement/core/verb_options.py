"""The options of each verb, declared once: a frozen value per verb, a field per option.

From a field come the flag of the command line, the field of a page's form and the text of the
command that a page shows. A value is checked where it is made. The options of what-if are the
conditions themselves (`placement/costs/what_if.py`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

REQUIRED = dataclasses.MISSING
# Seconds that a step of a live run may take where nothing is said.
STEP_TIMEOUT_S = 60.0
MOST_STEPS, MOST_WARMUP, MOST_IN_FLIGHT = 100_000, 10_000, 64
# Steps of a method that are shown one by one.
MOST_SHOWN = 10_000
# Where searches compute, beside ray://HOST:PORT.
LOCAL, CLUSTER = "local", "ray"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Option:
    """How a field is asked for.

    `flag` is its name on the command line; without one it is for callers in Python alone. `label`
    stands beside the field of a form, which takes numbers from `least` to `most`. A command names
    the option where it is not the default, one that is `always_named` in any case.
    """

    name: str
    type: Any
    default: Any
    help: str
    flag: str
    metavar: str | None
    label: str
    least: float | None
    most: float | None
    always_named: bool

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def attribute(self) -> str:
        """What the command line's parser calls it."""
        return self.flag.lstrip("-").replace("-", "_")


def option(
    default: Any,
    help: str = "",
    *,
    flag: str = "",
    metavar: str | None = None,
    label: str = "",
    least: float | None = None,
    most: float | None = None,
    always_named: bool = False,
) -> Any:
    """A field of a verb's options, with what the command line and the form say about it."""
    about = {
        "help": help,
        "flag": flag,
        "metavar": metavar,
        "label": label,
        "least": least,
        "most": most,
        "always_named": always_named,
    }
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def options_of(kind: type[Any]) -> tuple[Option, ...]:
    """The options of a verb, in the order in which they are declared."""
    hints = get_type_hints(kind)
    return tuple(
        Option(name=f.name, type=hints[f.name], default=_default(f), **f.metadata)
        for f in dataclasses.fields(kind)
    )


def option_of(kind: type[Any], name: str) -> Option:
    return next(found for found in options_of(kind) if found.name == name)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def made(kind: type[T], options: T | None, named: Mapping[str, Any]) -> T:
    """The options of a call: the value that it was given, or one of the options that it names.

    So `pl.run(..., RunOptions(steps=30))` and `pl.run(..., steps=30)` are the same. A TypeError
    says which options there are.
    """
    known = [found.name for found in options_of(kind)]
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise TypeError(f"There is no option {unknown!r}; there are: {', '.join(known)}.")
    if options is None:
        return kind(**named)
    if named:
        raise TypeError(f"Put {next(iter(named))!r} into the {kind.__name__} that is given, too.")
    return options


def _steps(default: int, label: str, help: str) -> Any:
    return option(
        default, help, flag="--steps", label=label, least=1, most=MOST_STEPS, always_named=True
    )


def _warmup(label: str, help: str) -> Any:
    return option(
        3, help, flag="--warmup", label=label, least=0, most=MOST_WARMUP, always_named=True
    )


def _seed() -> Any:
    said, label = "seed of inputs and of the placer", "Seed of the inputs"
    return option(0, said, flag="--seed", label=label, least=0, always_named=True)


def _timeout(what: str) -> Any:
    said = f"give up after this on a {what}, or on measuring beforehand (default: 60 s a {what})"
    return option(None, said, flag="--timeout", metavar="S")


def _time_limit(who: str, label: str) -> Any:
    said = f"seconds that {who} may take"
    return option(None, said, flag="--time-limit", metavar="S", label=label, least=0.1)


def _search_on() -> Any:
    said = (
        "where searches compute: local, ray for all hosts of the cluster that runs here, or"
        " ray://HOST:PORT; left out it is the cluster where the devices are those of one"
    )
    return option("", said, flag="--search-on", metavar="WHERE", label="Search on")


def _require_where(search_on: str) -> None:
    """ValueError where nothing can be searched on what an option names."""
    known = search_on in ("", LOCAL, CLUSTER)
    if not known and not search_on.startswith(f"{CLUSTER}://"):
        raise ValueError(f"Nothing searches on {search_on!r}; use local, ray, or ray://HOST:PORT.")


class _Timed:
    """Options of live runs, whose steps end or are given up."""

    timeout_s: float | None

    @property
    def step_timeout_s(self) -> float:
        return STEP_TIMEOUT_S if self.timeout_s is None else self.timeout_s


@dataclass(frozen=True, kw_only=True)
class RunOptions(_Timed):
    """A live run of one step after another."""

    steps: int = _steps(
        20,
        "Steps",
        "a step is one pass through the model, from its inputs being there to its last output",
    )
    warmup: int = _warmup(
        "Warm-up steps", "steps before the measured ones, because the first are slower"
    )
    seed: int = _seed()
    timeout_s: float | None = _timeout("step")

    def __post_init__(self) -> None:
        if self.steps < 1 or self.warmup < 0:
            raise ValueError(
                f"A run needs at least 1 step and 0 warm-ups, not {self.steps} and {self.warmup}."
            )


@dataclass(frozen=True, kw_only=True)
class RefineOptions:
    """What becomes of a run beyond its result."""

    refine: bool = option(
        False,
        "let what the run has measured refine the stored times of this model, as far as that makes"
        " predictions of other placements better; `profile --as-measured` takes it back",
        flag="--refine",
        label="Refine predictions",
    )


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """What becomes of a run whose devices are lost in the middle."""

    resume: bool = option(
        False,
        "where a host of a cluster leaves in the middle, place anew on the devices that are left"
        " and run again",
        flag="--resume",
        label="Run again without hosts that leave",
    )


@dataclass(frozen=True, kw_only=True)
class StreamOptions(_Timed):
    """A live run of a pipeline: `depth` samples are in flight at most, None chooses."""

    samples: int = _steps(
        200,
        "Samples",
        "a sample is one input on its way through the model. The next one begins before the last"
        " one is out, so that all devices work at the same time, as in an assembly line: a"
        " pipeline",
    )
    warmup: int = _warmup(
        "Warm-up samples", "samples before the measured ones; always enough to fill the pipeline"
    )
    seed: int = _seed()
    depth: int | None = option(
        None,
        "how many samples of a throughput run may be on their way at once; left out it is one for"
        " each stage and a few more, or as many as memory holds. More do not make the pipeline"
        " faster, only each sample wait longer; fewer than there are stages leave devices idle",
        flag="--depth",
        label="Most samples in flight",
        least=1,
        most=MOST_IN_FLIGHT,
    )
    timeout_s: float | None = _timeout("sample")

    def __post_init__(self) -> None:
        if self.samples < 1 or self.warmup < 0:
            raise ValueError(
                "A pipeline needs at least 1 sample and 0 warm-ups, not"
                f" {self.samples} and {self.warmup}."
            )
        if self.depth is not None and self.depth < 1:
            raise ValueError(
                f"A stream needs at least 1 sample and a depth of 1, not {self.samples} and"
                f" {self.depth}."
            )


@dataclass(frozen=True, kw_only=True)
class TrainOptions(_Timed):
    """A training run; with `adjust` another placement may take over between two steps."""

    steps: int = _steps(
        200, "Training steps", "each goes forward, backward, and updates the weights"
    )
    seed: int = _seed()
    adjust: bool = option(
        True,
        "place anew between two steps when a device has become slower or faster",
        flag="--adjust",
        label="Adjust while training",
        always_named=True,
    )
    placer: str = option("ceft_pbqp", "what places anew", flag="--adjust-placer", metavar="NAME")
    margin: float = option(0.05, "the share of a step that a move must save", flag="--margin")
    resume: bool = option(
        False,
        "keep what a step starts from on two hosts of a cluster; where one leaves in the middle, go"
        " on from the last step on the devices that are left",
        flag="--resume",
        label="Go on without hosts that leave",
    )
    timeout_s: float | None = _timeout("step")

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"Training needs at least 1 step, not {self.steps}.")


@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """What a problem allows beyond its machine."""

    offload: bool = option(
        False,
        "weights that an accelerator's memory does not hold may stay in host memory; they are sent"
        " over the link in every step, which takes time",
        flag="--offload",
        label="Weights may stream from host memory",
    )


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """A placer, its settings, and what it may take."""

    placer: str = option("heft", "see the verb placers", flag="--placer", always_named=True)
    time_limit_s: float | None = _time_limit("the placer", "Time limit (s)")
    seed: int = option(
        0, "seed of the placer", flag="--seed", label="Seed", least=0, always_named=True
    )
    settings: Mapping[str, Any] = option(
        {}, "a setting of the placer", flag="--set", metavar="NAME=VALUE"
    )
    live: bool = option(
        False,
        "measure placements on this computer in the end: a placer that learns goes on with them, of"
        " any other the finalists, each device alone and the whole CPU run turn by turn",
        flag="--live",
        label="Measure in the end",
    )
    live_placements: int = option(
        100,
        "how many placements one that learns may measure; each is run some ten times",
        flag="--live-placements",
        metavar="N",
        label="Placements to measure",
        least=1,
    )
    live_limit_s: float = option(
        30.0,
        "seconds that the turns of finalists may take; they end before once the fastest is certain",
        flag="--live-limit",
        metavar="S",
        label="Seconds of measuring",
        least=1.0,
    )
    search_on: str = _search_on()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", dict(self.settings or {}))
        _require_where(self.search_on)
        if self.live_placements < 1:
            raise ValueError(
                f"A placer cannot learn from {self.live_placements} placements; measure 1 or more."
            )
        if not self.live_limit_s > 0:
            raise ValueError(f"Nothing can be measured in {self.live_limit_s} s; allow more.")


@dataclass(frozen=True, kw_only=True)
class StepsOptions:
    """A placer that shows what it works out on its way to a placement."""

    placer: str = option("heft", "see the verb placers", flag="--placer", always_named=True)
    seed: int = option(0, "seed of the placer", flag="--seed", label="Seed", least=0)
    settings: Mapping[str, Any] = option(
        {}, "a setting of the placer", flag="--set", metavar="NAME=VALUE"
    )
    most: int = option(
        400,
        "about how many steps are shown one by one; what comes after them is one more step",
        flag="--most",
        metavar="N",
        label="Most steps",
        least=1,
        most=MOST_SHOWN,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", dict(self.settings or {}))
        if not 1 <= self.most <= MOST_SHOWN:
            raise ValueError(f"{self.most} steps cannot be shown; use 1 to {MOST_SHOWN}.")


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Placers to compare, and what each may take; with `live` each placement is measured too."""

    placers: tuple[str, ...] = option(REQUIRED, flag="--placers", metavar="A,B,C")
    time_limit_s: float | None = _time_limit("each placer", "Time limit for each (s)")
    seed: int = option(0, "seed of the placers, and of inputs", flag="--seed", least=0)
    live: bool = option(False, "measure each placement too", flag="--live")
    search_on: str = _search_on()

    def __post_init__(self) -> None:
        object.__setattr__(self, "placers", tuple(self.placers))
        _require_where(self.search_on)
        if not self.placers:
            raise ValueError("There is no placer to compare; name at least one.")

    def of(self, placer: str) -> PlaceOptions:
        """What one of the placers is asked for."""
        return PlaceOptions(
            placer=placer,
            time_limit_s=self.time_limit_s,
            seed=self.seed,
            search_on=self.search_on,
        )


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """A placed model as a file of another format, with the times of a run if one is named."""

    format: str = option(
        REQUIRED, "see the verb exporters", flag="--format", metavar="F", label="Format"
    )
    run: str | None = option(
        None, "what run --json printed, as measured", flag="--run", metavar="RESULT.json"
    )
    out: str = option(
        REQUIRED,
        "a file; for several files a folder, or one archive if it ends in .zip",
        flag="--out",
        metavar="PATH",
    )


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """Measuring: anew with `refresh`, for `timeout_s` or as long as it takes.

    With `as_measured` what live runs have refined since is dropped.
    """

    refresh: bool = option(False, "measure again even if stored", flag="--refresh")
    as_measured: bool = option(
        False, "take back what live runs have refined (run --refine)", flag="--as-measured"
    )
    timeout_s: float | None = option(None, flag="--timeout", metavar="S")


def command(options: Any, *, without: str = "") -> list[str]:
    """The options as one types them: those that are not the default, or are always named.

    `without` names one that stands elsewhere in the command.
    """
    argv: list[str] = []
    for found in options_of(type(options)):
        value = getattr(options, found.name)
        is_asked = found.always_named or value != found.default
        if found.flag and found.name != without and is_asked:
            argv += _typed(found, value)
    return argv


def _typed(found: Option, value: Any) -> list[str]:
    if isinstance(value, bool):
        if found.default is False:
            return [found.flag] if value else []
        return [found.flag if value else found.flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        pairs = (f"{_text(name)}={_text(one)}" for name, one in value.items())
        return [part for pair in pairs for part in (found.flag, pair)]
    return [found.flag, _text(value)]


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)
