"""The verb `train` of the command line."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import numpy as np

import placement as pl
from placement.api.train import has_diverged, require_training
from placement.cli.printing import lines_of, listener, print_answer
from placement.cli.reading import chosen, read_inputs, read_model, read_problem
from placement.core.formatting import counted
from placement.remote.signals import TERMINATED, Stop, partly

if TYPE_CHECKING:
    from placement.core.problem import Problem
    from placement.schedule.simulated import Simulated
    from profiling.training.loop import Trained

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
            steps=options.steps,
            adjust=options.adjust,
            placer=options.adjust_placer,
            margin=options.margin,
            seed=options.seed,
            inputs=inputs,
            timeout_s=options.timeout,
            emit=emit,
            stop=stop,
        )
    answer = of_training(problem, predicted, trained, options.adjust)
    answer["cancelled"] = stop.asked
    if options.jsonl:
        answer["placement"] = placement.to_json()
        answer["final_placement"] = trained.placement.to_json()
    print_answer(options, answer, _lines(answer))
    return TERMINATED if stop.asked else int(has_diverged(trained.losses))


def of_training(
    problem: "Problem", predicted: "Simulated", trained: "Trained", adjusted: bool
) -> dict[str, Any]:
    """A training run as JSON."""
    from profiling.training.loop import move_to_json

    p5_s, median_s, p95_s = np.percentile(trained.step_s or (0.0,), (5, 50, 95)).tolist()
    losses = trained.losses
    return {
        "step_s": {"median": median_s, "p5": p5_s, "p95": p95_s},
        "steps": len(trained.step_s),
        "losses": {"first": losses[0], "last": losses[-1]} if losses else None,
        "predicted_s": predicted.timeline.step_s,
        "predicted_final_s": trained.predicted_s[-1] if trained.predicted_s else None,
        "adjusted": adjusted,
        "moves": [move_to_json(move) for move in trained.moves],
        "stays": [{"step": s.step, "reason": s.reason} for s in trained.stays],
        "between_steps_s": {
            "probes": trained.probe_s,
            "searching": trained.solve_s,
            "switching": trained.switch_s,
        },
        "costs": problem.costs.origin,
        "emulated": problem.machine.emulated,
        "ops_per_device": trained.placement.ops_per_device(),
        "num_segments": len(trained.schedule.segments),
        "steps_s": list(trained.step_s),
        "all_losses": list(losses),
        "predicted_steps_s": list(trained.predicted_s),
    }


def _lines(answer: dict[str, Any]) -> list[str]:
    """For a person: the numbers, then a line for each move."""
    said = lines_of({key: value for key, value in answer.items() if key not in _LONG})
    moved = (
        f"before step {move['step']}: {counted(move['ops_moved'], 'op')} moved with"
        f" {move['bytes_moved']} bytes; {move['reason']}"
        for move in answer["moves"]
    )
    return [*said, *moved]
