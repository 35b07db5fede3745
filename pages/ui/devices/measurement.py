"""Measure what the model's kernels cost on this machine; keep, renew, forget, bring or take it."""

import json
from functools import partial

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

import placement as pl
from pages.ui.session import cache, choices, saving
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary, job_status
from placement.api.wording import refining_in_words
from placement.core import formatting
from placement.core.machine import Machine
from placement.core.profile import profile_from_json, runs_of
from placement.core.verb_options import ProfileOptions
from placement.files.input import json_value
from profiling.measuring.store import ProfileStore, age_s, changes
from studio.jobs import command_line, jobs, kinds
from studio.snapshot import Studio


def show(now: Studio) -> None:
    st.subheader(
        "Measured times",
        help=f"How long each kernel takes on each device. {glossary.LIBRARY}",
    )
    if now.model.problem is not None:
        st.caption("The times stand in the file.")
        return
    _state(now)
    _buttons(now)
    job_status.show(now, "profile")
    argv = command_line.profile(now, _options(now))
    job_status.command_box(argv)


def _state(now: Studio) -> None:
    """Whether there are measurements, how old, and whether anything changed since."""
    profile = now.profile
    if profile is not None:
        age = age_s(profile)
        when = "at an unknown time" if age is None else formatting.age(age)
        st.success(
            f"Measured {when}: {formatting.counted(len(profile.kernels.ops), 'kernel')} on"
            f" {formatting.counted(len(profile.step_s), 'device')},"
            f" {formatting.percent(profile.coverage)} of all pairs.",
            icon=":material/timer:",
        )
        if profile.load is not None and profile.load.is_busy:
            st.warning(
                f"Meanwhile {profile.load.words}, so that these times are too long; measure again"
                " when the computer is quiet."
            )
        known = runs_of(profile)
        if known:
            by = "; ".join(map(refining_in_words, known))
            st.caption(
                glossary.plain(
                    f"Refined since by {formatting.counted(len(known), 'live run')}: {by}. The tab"
                    " Run takes it back."
                )
            )
        if profile.all_cores_s is not None:
            alone = [s for s in profile.step_s if s is not None]
            st.caption(
                f"The whole model takes {formatting.seconds(min(alone, default=None))} on the best"
                f" device alone, {formatting.seconds(profile.all_cores_s)} on the whole CPU"
                " undivided."
            )
        return
    found = cache.other_profiles(now.model, now.stated_machine)
    others = [p for p in found if _same_kind(now, p.machine)]
    if others:
        differences = ", ".join(changes(others[0].machine, now.stated_machine)[:4])
        st.warning(
            "The machine or a library changed since this model was measured"
            f" ({glossary.plain(differences)}); estimates are used until it is measured again."
        )
    elif not now.model.has_weights:
        st.info(f"{glossary.WEIGHTLESS} All times are estimates by formula.")
    elif now.can_measure:
        st.info("Not measured yet: all times are estimates by formula.")
    else:
        reason = glossary.EMULATED if now.emulated else glossary.ABSENT
        st.info(f"{reason} All times are estimates by formula.")


def _same_kind(now: Studio, machine: Machine) -> bool:
    return [d.name for d in machine.devices] == [d.name for d in now.stated_machine.devices]


def _buttons(now: Studio) -> None:
    busy = jobs.is_live(now.project.folder, "profile")
    locked = not choices.may_write()
    able = now.can_measure
    measure, forget, take, bring = st.columns([0.25, 0.2, 0.25, 0.3], vertical_alignment="bottom")
    measure.button(
        "Measure again" if now.profile else "Measure this model",
        type="secondary" if now.profile else "primary",
        disabled=busy or locked or not able,
        on_click=carry_out,
        args=(lambda now: kinds.start_profile(now, _options(now)),),
        width="stretch",
        help=None if able else "Only a model file on devices of this computer can be measured.",
    )
    forget.button(
        "Forget",
        disabled=now.profile is None or locked,
        on_click=_forget,
        width="stretch",
        help="Removes the measurements of this model on every machine.",
    )
    if now.profile is not None:
        take.download_button(
            "Download",
            data=json.dumps(now.profile.to_json()),
            file_name=f"{now.model.graph.name}-profile.json",
            mime="application/json",
            width="stretch",
        )
    with bring.popover("Bring your own", disabled=locked, width="stretch"):
        given = st.file_uploader("Profile file (JSON)", type=["json"], key="profile-upload")
    saving.upload(given, "profile", partial(_take_over, now))


def _options(now: Studio) -> ProfileOptions:
    """What is measured already is measured again."""
    return ProfileOptions(refresh=now.profile is not None)


def _forget() -> None:
    ProfileStore().clear(studio().model.graph.fingerprint)


def _take_over(now: Studio, upload: UploadedFile) -> None:
    try:
        profile = profile_from_json(json_value(upload.getvalue()))
        if profile.graph != now.model.graph.fingerprint:
            raise ValueError("it was measured for another model (or other dimensions).")
        if profile.machine.fingerprint != now.stated_machine.fingerprint:
            raise ValueError("it was measured on another machine; choose that machine first.")
        pl.make_problem(now.model, now.stated_machine, profile)
    except ValueError as error:
        choices.say("error", f"{upload.name}: {error}")
    else:
        with saving.change(f"{upload.name} was not taken over."):
            ProfileStore().put(profile)
            choices.say("success", f"{upload.name} is used from now on.")
