"""`placement-studio`: where its server listens, and what becomes of a window."""

import os
import socket
import sys
from pathlib import Path

import pytest

from placement.cli import desktop, window
from placement.cli.window import Shown
from placement.files import named

BROWSER = """#!/bin/sh
printf '%s\\n' "$*" >> "$SAID"
sleep "$LASTS_S"
exit "$STATUS"
"""


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A browser of our own under a known name, alone on the path; what it was called with."""
    path, said = tmp_path / "bin" / "google-chrome", tmp_path / "said"
    path.parent.mkdir()
    path.write_text(BROWSER)
    path.chmod(0o755)
    monkeypatch.setitem(sys.modules, "webview", None)
    monkeypatch.setattr(window.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(window, "QUICK_S", 0.3)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/bin")
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SAID", str(said))
    return said


@pytest.mark.parametrize(
    ("lasts_s", "code", "shown"),
    [("0.4", "0", Shown.CLOSED), ("0", "0", Shown.ELSEWHERE), ("0", "1", Shown.NOWHERE)],
)
def test_a_browser_shows_each_address_as_an_app(browser, monkeypatch, capsys, lasts_s, code, shown):
    monkeypatch.setenv("LASTS_S", lasts_s)
    monkeypatch.setenv("STATUS", code)
    asked = ("http://127.0.0.1:1/?a", "http://127.0.0.1:1/?b")
    assert window.show_until_closed(asked) is shown
    calls = sorted(browser.read_text().splitlines(), key=lambda line: line[-1])
    assert [line.split()[-1] for line in calls] == [f"--app={address}" for address in asked]
    profile = Path(os.environ["PLACEMENT_STUDIO_HOME"]) / "window"
    assert all(f"--user-data-dir={profile}" in line for line in calls)
    assert ("opened no window (status 1)" in capsys.readouterr().out) == (shown is Shown.NOWHERE)


def test_without_any_browser_for_apps_a_sentence_says_what_to_install(browser, monkeypatch, capsys):
    monkeypatch.setattr(window.shutil, "which", lambda name: None)
    assert window.show_until_closed(("http://127.0.0.1:1/",)) is Shown.NOWHERE
    assert "install pywebview, Chrome, Chromium or Edge" in capsys.readouterr().out


def test_the_first_free_port_is_taken_and_a_taken_one_is_refused():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        taken = one.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {taken} cannot be had"):
            desktop._port("127.0.0.1", taken)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desktop, "FIRST_PORT", taken)
            assert desktop._port("127.0.0.1", None) != taken
    with pytest.raises(ValueError, match="port 70000 cannot be had"):
        desktop._port("127.0.0.1", 70000)


@pytest.mark.parametrize(
    ("further", "host"),
    [
        ((), "127.0.0.1"),
        (("--server.address", "0.0.0.0"), "127.0.0.1"),
        (("--server.address=192.168.1.7", "--server.allowedHosts", "lab"), "192.168.1.7"),
    ],
)
def test_the_server_is_asked_where_it_listens(further, host):
    assert desktop._host(further) == host


@pytest.mark.parametrize(
    ("further", "url"),
    [
        ((), "http://127.0.0.1:8700/"),
        (("--server.address", "::1"), "http://[::1]:8700/"),
        (("--server.baseUrlPath=/lab/", "--server.port", "1"), "http://127.0.0.1:8700/lab/"),
        (("--server.sslCertFile", "cert.pem"), "https://127.0.0.1:8700/"),
    ],
)
def test_the_browser_is_sent_where_the_server_answers(further, url):
    assert desktop._url(desktop._host(further), 8700, further) == url


def test_a_port_among_the_options_of_the_server_is_the_one_that_is_taken():
    assert desktop._given(("--server.port", "9000"), "--server.port", None) == "9000"
    assert desktop._port("127.0.0.1", "0") > 0
    with pytest.raises(ValueError, match="'many' is not a number"):
        desktop._port("127.0.0.1", "many")
    with pytest.raises(ValueError, match="no address"):
        desktop._port("no.such.host.invalid", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["~nobody-at-all/a.onnx"], "There is no home folder for '~nobody-at-all/a.onnx'"),
        (["nothing.onnx"], "There is no file 'nothing.onnx'; check the path."),
        (["onnx-alexnet", "--placement", "no.json"], "There is no file 'no.json'; check the path."),
        (["--placement", "no.json"], "--placement is of one model; name that one beside it."),
        (["onnx-alexnet", "onnx-resnet50", "--placement", "a"], "--placement is of one model"),
        (["--ports", "1"], "Unrecognized arguments: --ports"),
        (["--port", "many"], "invalid int value: 'many'"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(given, said, capsys, monkeypatch):
    monkeypatch.setattr(desktop.subprocess, "Popen", None)
    with pytest.raises(SystemExit, match="2"):
        desktop.main(given)
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_a_word_stands_for_one_model_and_cannot_be_guessed(monkeypatch, tmp_path):
    words, variables = named.variables(("a.onnx", "b.onnx"), tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert [named.model_of(word) for word in words] == ["a.onnx", "b.onnx"]
    assert all(len(word) >= 20 for word in words)
    assert named.model_of("a.onnx") is None and named.model_of("") is None
    assert named.path_of("a.onnx") == tmp_path / "a.onnx"
    assert named.path_of("/else/a.onnx") == Path("/else/a.onnx")
    assert named.placement() == ""
    _, variables = named.variables(("a.onnx",), tmp_path, "placed.json")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert named.placement() == "placed.json"


@pytest.mark.parametrize(("wanted", "opens", "said"), [(1, True, 1), (0, True, 2), (2, False, 3)])
def test_what_no_browser_shows_is_told(wanted, opens, said, capsys, monkeypatch):
    addresses = ("http://127.0.0.1:1/?a", "http://127.0.0.1:1/?b")
    opened = []
    monkeypatch.setattr(desktop.webbrowser, "open", lambda url: opened.append(url) or opens)
    desktop._show_in_browser(addresses[:wanted], addresses)
    assert opened == list(addresses[:wanted])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == said
    assert ("No browser was found here." in lines) == (not opens)
    told = [address for address in addresses if any(address in line for line in lines)]
    assert told == list(addresses[wanted:] if opens else addresses)
