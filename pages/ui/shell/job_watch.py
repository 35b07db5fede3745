"""How far a job is, told to the browser past Streamlit: to draw a part of the page anew takes more
of a computer than a measurement bears beside itself.

A question carries the name of its session, which no other knows, and that of a job which this
session was shown. `SameOrigin` stands before the address as before all others.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from streamlit import config

if TYPE_CHECKING:
    from starlette.requests import Request

    from studio.jobs.jobs import Job

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SCRIPTS = ("timeline/elements.js", "jobs/watch.js")
NAME = "placement/job"
# How often a browser asks, and how often what a job has so far is drawn anew: a search loses little
# by it, a measurement much, and it is drawn the more rarely the longer it has gone on.
SEARCHING_LOOK_S, SEARCHING_DRAW_S = 0.5, 2.0
MEASURING_LOOK_S, MEASURING_DRAW_S = 1.0, 20.0
MOST_STEPS, MOST_WATCHED = 300, 256
watched: OrderedDict[str, Path] = OrderedDict()


def address() -> str:
    """The path of the route, below the path that the studio is served at."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return f"/{base}/{NAME}" if base else f"/{NAME}"


def route() -> Route:
    return Route(f"{address()}/{{job}}", _answer)


async def _answer(request: "Request") -> Response:
    folder = watched.get(request.path_params["job"])
    if folder is None:
        return Response(status_code=404)
    found = await run_in_threadpool(_told_of, folder)
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


def _told_of(folder: Path) -> dict[str, Any]:
    from studio.jobs import jobs

    try:
        return told(jobs.read(folder.parents[1], folder.name))
    except ValueError:
        # It is gone, and what watched it is drawn anew.
        gone = {"live": False, "share": 0.0, "text": "", "steps_s": [], "num_steps": 0, "stamp": -1}
        return {**gone, "look_s": MEASURING_LOOK_S, "draw_s": MEASURING_DRAW_S}


def told(job: "Job") -> dict[str, Any]:
    """What the browser shows of a job; `stamp` changes with all that it has said."""
    from studio.jobs import kinds

    share, doing = job.progress
    steps = job.steps
    return {
        "live": job.is_live,
        "share": round(share, 3),
        "text": job.message or f"{kinds.WORDS.get(job.verb, job.verb)}: {doing}",
        "steps_s": [float(f"{step.seconds:.4g}") for step in steps[-MOST_STEPS:]],
        "num_steps": len(steps),
        "stamp": len(job.events),
        "look_s": SEARCHING_LOOK_S if job.is_searching else MEASURING_LOOK_S,
        "draw_s": _draw_s(job),
    }


def _draw_s(job: "Job") -> float:
    """How long a drawing of what a job has so far may be shown."""
    if job.is_searching:
        return SEARCHING_DRAW_S
    half_s = 0.5 * (time.time() - job.started_at)
    return round(min(MEASURING_DRAW_S, max(SEARCHING_DRAW_S, half_s)), 1)


def watch(
    job: "Job",
    place: str,
    *,
    shown: bool = True,
    draws: bool = False,
    lines: bool = False,
    predicted_s: float | None = None,
) -> None:
    """Have the fragment that this stands in drawn anew when the job has ended.

    With `draws` also now and then while it goes on. Unless it is not `shown` it says how far the
    job is; with `lines` it draws its steps beside what is predicted of one.
    """
    from pages.ui.session import choices
    from pages.ui.shell import glossary

    name = f"{choices.nonce()}-{job.id}"
    watched.pop(name, None)
    watched[name] = job.folder
    while len(watched) > MOST_WATCHED:
        watched.popitem(last=False)
    data = {
        "address": address(),
        "job": name,
        "told": told(job),
        "shown": shown,
        "draws": draws,
        "lines": lines,
        "predicted_s": predicted_s,
        "per": glossary.TIMED[job.about.goal],
    }
    _component(shown)(
        key=f"watch-{place}-{job.id}", data=data, on_news_change=_drawn_anew, height="content"
    )


def _drawn_anew() -> None:
    """What it stands in reads the job."""


@cache
def _component(shown: bool) -> Callable[..., object]:
    # In the page's own styles, which know what stands at its foot by its words.
    html, css = ((ASSETS / f"jobs/watch.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return st.components.v2.component(
        "placement_job" if shown else "placement_job_unseen",
        html=html if shown else "",
        css=css if shown else "",
        js=js,
        isolate_styles=False,
    )
