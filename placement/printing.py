"""What the verbs of the command line print: answers, and what goes on meanwhile."""

import json
import math
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from placement import pipeline


def listener(options: Namespace) -> pipeline.Emit:
    """Events to standard output as JSON lines, or progress to a person's terminal, or nowhere."""
    if getattr(options, "jsonl", False):
        return print_event
    if sys.stderr.isatty():
        return show_progress
    return pipeline.silent


def print_event(event: dict[str, Any]) -> bool:
    print(json.dumps(finite(event), allow_nan=False), flush=event["event"] != "span")
    return True


def show_progress(event: dict[str, Any]) -> bool:
    if event["event"] == "progress":
        text = event.get("what", "")
        print(
            f"\r{event.get('step', '')}/{event.get('of', '')} {text:60.60}", end="", file=sys.stderr
        )
    elif event["event"] == "waiting":
        print(f"\r{event['holder']}", file=sys.stderr)
    return True


def print_answer(options: Namespace, answer: Any, lines: Any) -> int:
    if getattr(options, "jsonl", False):
        print(json.dumps(finite({"event": "result", **answer}), allow_nan=False), flush=True)
    elif options.json:
        print(json.dumps(finite(answer), allow_nan=False), flush=True)
    else:
        for line in lines:
            print(line)
    return 0


def finite(answer: Any) -> Any:
    """The same with null for numbers that JSON lacks, as the time of an unsupported op."""
    if isinstance(answer, float):
        return answer if math.isfinite(answer) else None
    if isinstance(answer, Mapping):
        return {key: finite(value) for key, value in answer.items()}
    return [finite(value) for value in answer] if isinstance(answer, list | tuple) else answer
