"""Jobs: whatever a worker does, the page reads one of five endings and a sentence."""

import os
import signal
import sys
import time

import pytest

from studio.jobs import event_log, jobs, process, records
from studio.jobs.records import About
from studio.project.files import read_json, write_json

WORKER = """
import json, os, signal, sys, time
def say(**event): print(json.dumps(event), flush=True)
for word in sys.argv[2:]:
    if word == "progress": say(event="progress", step=3, of=10, what="kernel 3")
    if word == "result": say(event="result", value=1.5, unit="s")
    if word == "waiting": say(event="waiting", holder="Waiting for process 7 to end measuring.")
    if word == "garbage": print("not json {", flush=True); print("[1]", flush=True)
    if word == "half": print('{"event": "res', end="", flush=True)
    if word == "bad": print("There is no file 'x'; check the path.", file=sys.stderr); sys.exit(2)
    if word == "native": print("2026 [W:onnxruntime:, x.cc:1] a warning", file=sys.stderr)
    if word == "trace": raise KeyError("fault")
    if word == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if word == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(event="progress", what="deaf")
    if word == "polite":
        signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_DFL))
        say(event="progress", what="deaf")
        signal.pause()
        time.sleep(1)
        say(event="result", value=2.5, unit="s")
    if word == "hang": time.sleep(600)
"""


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(*words):
        job_id = jobs.start(
            tmp_path, "place", words, About(placer="heft"), (sys.executable, "-c", WORKER)
        )
        started.append(job_id)
        return job_id

    yield begin
    for job_id in started:
        record = read_json(tmp_path / "jobs" / job_id / "job.json")
        if process.is_alive(record["pid"], record["born_at"]):
            os.killpg(record["pid"], signal.SIGKILL)


def until(tmp_path, job_id, wanted):
    """The job once `wanted` holds for it; there is no limit but the test runner's patience."""
    end_s = time.monotonic() + 60
    while not wanted(job := jobs.read(tmp_path, job_id)) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert wanted(job), job
    return job


def ended(tmp_path, job_id):
    return until(tmp_path, job_id, lambda job: not job.is_live)


def test_a_result_ends_a_job(tmp_path, start):
    job = ended(tmp_path, start("progress", "result"))
    assert (job.status, job.result.value, job.about.placer) == ("done", 1.5, "heft")
    assert job.progress == (0.3, "Kernel 3")


def test_lines_that_are_no_events_are_counted_and_passed_over(tmp_path, start):
    job = ended(tmp_path, start("garbage", "result", "half"))
    assert (job.status, job.num_garbled, len(job.events)) == ("done", 2, 1)


def test_a_growing_file_is_read_on_from_where_it_was_left(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event": "step", "index": 0, "seconds": 0.5}\n{"event": "sp')
    assert event_log.read(path, "place")[0] == (event_log.Step(seconds=0.5),)
    with open(path, "ab") as file:
        file.write(b'an", "kind": "compute"}\n\nnoise\n{"event": "step"}\n')
        file.write(b'{"event": "of a later version"}\n{"event": "waiting", "holder": "x"}\n')
    found, num_garbled = event_log.read(path, "place")
    assert (
        found == (event_log.Step(seconds=0.5), event_log.Waiting(holder="x")) and num_garbled == 2
    )


def test_a_file_that_grows_faster_than_it_is_read_is_read_to_where_it_ended(tmp_path, monkeypatch):
    path, line = tmp_path / "events.jsonl", '{"event": "progress"}\n'
    path.write_text(line * 3)
    parsed, seen = event_log.decoded, []

    def grows(row, verb):
        seen.append(row)
        assert len(seen) < 100, "it is read for good"
        with path.open("a") as file:
            file.write(line * 1000)
        return parsed(row, verb)

    monkeypatch.setattr(event_log, "decoded", grows)
    assert len(event_log.read(path, "place")[0]) == 3


def test_bad_input_is_told_in_the_worker_s_own_words(tmp_path, start):
    job = ended(tmp_path, start("native", "bad"))
    assert (job.status, job.message) == ("failed", "There is no file 'x'; check the path.")


def test_a_fault_is_one_sentence_and_no_trace(tmp_path, start):
    job = ended(tmp_path, start("trace"))
    assert job.status == "failed"
    assert "fault of the studio" in job.message and "\n" not in job.message


def test_a_crash_is_one_sentence(tmp_path, start):
    job = ended(tmp_path, start("progress", "native", "kill"))
    assert job.status == "interrupted"
    assert "ended by signal 9" in job.message and "start it again" in job.message


def test_no_result_and_no_word_is_an_interruption(tmp_path, start):
    assert ended(tmp_path, start("progress")).status == "interrupted"


def test_waiting_for_another_measurement_shows(tmp_path, start):
    job = until(tmp_path, start("waiting", "hang"), lambda job: job.events)
    assert (job.status, job.message) == ("waiting", "Waiting for process 7 to end measuring.")


def test_a_job_that_waited_runs_on(tmp_path, start):
    job = until(tmp_path, start("waiting", "progress", "hang"), lambda job: len(job.events) == 2)
    assert job.status == "running"


def test_cancel_ends_the_process(tmp_path, start):
    job_id = start("progress", "hang")
    until(tmp_path, job_id, lambda job: job.events)
    jobs.stop(tmp_path, job_id)
    assert ended(tmp_path, job_id).status == "cancelled"


def test_cancel_ends_a_process_that_does_not_listen(tmp_path, start, monkeypatch):
    monkeypatch.setitem(jobs.GRACE_S, "place", 0.3)
    job_id = start("stubborn", "hang")
    until(tmp_path, job_id, lambda job: job.events)
    jobs.stop(tmp_path, job_id)
    assert ended(tmp_path, job_id).status == "cancelled"


def test_cancel_pressed_twice_lets_a_job_give_what_it_has(tmp_path, start):
    job_id = start("polite")
    until(tmp_path, job_id, lambda job: job.events)
    jobs.stop(tmp_path, job_id)
    jobs.stop(tmp_path, job_id)
    assert ended(tmp_path, job_id).result.value == 2.5


def test_cancelling_an_ended_job_changes_nothing(tmp_path, start):
    job_id = start("result")
    ended(tmp_path, job_id)
    jobs.stop(tmp_path, job_id)
    assert jobs.read(tmp_path, job_id).status == "done"


def test_another_server_finds_the_job_running_and_its_end(tmp_path, start, monkeypatch):
    job_id = start("progress", "hang")
    until(tmp_path, job_id, lambda job: job.events)
    child = process._children.pop(read_json(tmp_path / "jobs" / job_id / "job.json")["pid"])
    assert jobs.read(tmp_path, job_id).status == "running"
    child.kill()
    child.wait()
    assert ended(tmp_path, job_id).status == "interrupted"


def test_a_reused_process_id_is_not_the_job(tmp_path, start):
    job_id = start("progress")
    ended(tmp_path, job_id)
    path = tmp_path / "jobs" / job_id / "job.json"
    write_json(path, {**read_json(path), "pid": os.getpid()})
    assert jobs.read(tmp_path, job_id).status == "interrupted"


def test_jobs_are_listed_newest_first_and_notes_stay(tmp_path, start):
    first, second = start("result"), start("result")
    for job_id in (first, second):
        ended(tmp_path, job_id)
    assert jobs.listed(tmp_path) == (second, first)
    assert jobs.listed(tmp_path, "run") == ()
    jobs.note(tmp_path, first, collected=True)
    assert jobs.open_ones(tmp_path) == (second,)
    assert jobs.latest(tmp_path, "place").id == second


def test_an_unknown_job_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no job"):
        jobs.read(tmp_path, "nonsense")


def test_a_job_is_written_down_before_its_process_is_there(tmp_path, start, monkeypatch):
    seen = []

    def watched(command, out, errors, folder):
        (job_id,) = jobs.listed(tmp_path, "place")
        seen.append(jobs.read(tmp_path, job_id).status)
        return begin(command, out, errors, folder)

    begin = process.start
    monkeypatch.setattr(process, "start", watched)
    job_id = start("result")
    assert seen == ["running"] and ended(tmp_path, job_id).status == "done"


def test_a_server_that_was_killed_while_it_started_a_job_leaves_one_that_can_be_told(tmp_path):
    record = {"verb": "run", "argv": [], "pid": jobs.NOT_YET, "born_at": 0.0, "about": {}}
    started_at = time.time() - 2 * jobs.STARTING_S
    write_json(tmp_path / "jobs" / "1" / "job.json", {**record, "started_at": started_at})
    assert jobs.read(tmp_path, "1").status == "interrupted"


def test_a_process_that_cannot_be_started_leaves_no_job(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        jobs.start(tmp_path, "run", [], None, ("/nowhere/python",))
    assert jobs.listed(tmp_path) == () and not list((tmp_path / "jobs").iterdir())


@pytest.mark.parametrize(
    "content", ["", "[]", "7", "{}", '{"verb": 1}', '{"verb": "run", "about": [], "pid": "x"}']
)
def test_a_damaged_record_is_told_of_once_and_holds_up_nobody(tmp_path, start, content):
    job_id = start("result")
    damaged = tmp_path / "jobs" / "1" / "job.json"
    damaged.parent.mkdir()
    damaged.write_text(content)
    ended(tmp_path, job_id)
    assert jobs.listed(tmp_path) == jobs.open_ones(tmp_path) == (job_id,)
    with pytest.raises(ValueError, match="no job '1'"):
        jobs.read(tmp_path, "1")
    jobs.note(tmp_path, "1", collected=True)
    assert records.set_damaged_aside(tmp_path) == ("1",)
    assert records.set_damaged_aside(tmp_path) == ()
    assert damaged.with_suffix(".damaged").read_text() == content


def test_a_result_that_is_none_is_a_failure_that_says_why(tmp_path, start):
    job_id = start("result")
    ended(tmp_path, job_id)
    path = tmp_path / "jobs" / job_id / "damaged.jsonl"
    path.write_text('{"event": "result", "value": "x", "unit": "s"}\n')
    ((found,), _) = event_log.read(path, "place")
    assert found == event_log.Damaged(why="value: expected a number, got a text; run it again.")
    path.replace(path.with_name("events.jsonl"))
    event_log._tails.clear()
    job = jobs.read(tmp_path, job_id)
    assert (job.status, job.result) == ("failed", None) and found.why in job.message
