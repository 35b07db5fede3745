"""What onnxruntime raises, as one sentence: without its numbers, paths and lines of source."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from profiling.backends.base import RuntimeFailure

_LONGEST = 300
# "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Load model from /tmp/x/source.onnx failed:This is ..."
_NOISE = (
    re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "),
    re.compile(r"Load model from \S* ?failed:"),
    re.compile(r"/?\S*onnxruntime_src/\S+:\d+ "),
    re.compile(r"Status Message: (\S+\.(cc|h):\d+ \S+ )?"),
    re.compile(r"Non-zero status code returned while "),
)


def sentence(error: BaseException) -> str:
    """The error's text in one line without what only onnxruntime's authors can use.

    It names the node or its operator first, where onnxruntime names one.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    for noise in _NOISE:
        text = noise.sub("", text)
    return text[:_LONGEST].rstrip(" .:") + "."


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of onnxruntime's own kinds become failures: `what` it could not do, and why."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise RuntimeFailure(f"onnxruntime cannot {what}: {sentence(error)}") from None
