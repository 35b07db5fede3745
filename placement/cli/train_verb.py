"""The verb `train` of the command line."""

from argparse import Namespace

from msgspec.structs import replace

import placement as pl
from placement.api import answers
from placement.api.results import TrainResult
from placement.api.train import has_diverged, require_training
from placement.cli.printing import lines_of, listener, print_answer
from placement.cli.reading import chosen, read_inputs, read_model, read_options, read_problem
from placement.core.formatting import counted
from placement.core.verb_options import TrainOptions
from placement.remote.signals import TERMINATED, Stop, partly

_LONG = ("steps_s", "all_losses", "predicted_steps_s", "moves")


def train(options: Namespace) -> int:
    model = read_model(options)
    require_training(model.graph)
    _, problem = read_problem(options, model=model)
    inputs = read_inputs(options.inputs) if options.inputs else None
    placement = chosen(options, problem)
    stop = Stop()
    with partly(stop, listener(options)) as emit:
        predicted, trained = pl.train(
            model,
            problem,
            placement,
            read_options(options, TrainOptions),
            inputs=inputs,
            emit=emit,
            stop=stop,
        )
    answer = replace(
        answers.of_training(problem, predicted, trained, options.adjust), cancelled=stop.asked
    )
    if options.jsonl:
        answer = replace(answer, placement=placement, final_placement=trained.placement)
    print_answer(options, answer, _lines(answer))
    return TERMINATED if stop.asked else int(has_diverged(trained.losses))


def _lines(answer: TrainResult) -> list[str]:
    """For a person: the numbers, then a line for each move."""
    said = lines_of({k: v for k, v in answer.to_json().items() if k not in _LONG})
    moved = (
        f"before step {move.step}: {counted(move.ops_moved, 'op')} moved with"
        f" {move.bytes_moved} bytes; {move.reason}"
        for move in answer.moves
    )
    return [*said, *moved]
