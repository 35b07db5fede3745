"""HiGHS as all programs here are solved: on one thread, and silently.

What a verb prints may be read by another program, so that no line of a solver belongs there.
"""

from typing import Any


def silent_solver() -> Any:
    """A solver (highspy.Highs) of one thread without a model, which prints nothing from its birth.

    Since 1.16 its constructor sets callbacks, which prints who it is before an option can be set.
    """
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    solver = Silent()  # type: ignore[no-untyped-call]
    # Once more: an older one has not called the method above.
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver
