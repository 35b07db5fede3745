"""The page with small scripts in it: the same program, by another way."""

import json
import re
from urllib.parse import unquote

from pages.ui.shell import canvas_scripts
from pages.ui.shell.first_page import DRAWN_FIRST, SMALL_BYTES, first_page
from pages.ui.shell.page_scripts import FOLDER, PageScripts
from tests.pages.test_page_scripts import asked, teapot

SCRIPTS = FOLDER / "static" / "js"
INDEX = (FOLDER / "index.html").read_text(encoding="utf-8")
GOING = [("Sec-Fetch-Dest", "document"), ("Accept-Encoding", "gzip"), ("If-None-Match", "x")]


def made():
    return first_page(INDEX, SCRIPTS, "placement/canvas-1.js", "go();")


def carried(page):
    """The texts that travel with a page, by the names of their files."""
    texts = json.loads(re.search(r"texts = (\{.*?\});\n", page).group(1))
    assert not any("<" in text for text in texts.values())
    return {name: unquote(text.replace("@", "./")) for name, text in texts.items()}


def server(page, **further):
    """An app that answers every request with a page, whole or in two pieces."""

    async def app(scope, receive, send):
        app.asked = dict(scope["headers"])
        headers = [(b"content-type", b"text/html"), (b"etag", b"x"), (b"x-frame-options", b"DENY")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        pieces = further.get("pieces", [page])
        for left, piece in enumerate(pieces, 1 - len(pieces)):
            await send({"type": "http.response.body", "body": piece, "more_body": left < 0})

    return app


def test_what_travels_with_the_page_is_the_text_of_the_files():
    texts = carried(made())
    assert len(texts) > 50
    for name, text in texts.items():
        assert text == (SCRIPTS / name).read_text(encoding="utf-8"), name
        assert len(text) < SMALL_BYTES and "import.meta" not in text and "import(" not in text


def test_nothing_that_a_first_picture_needs_is_asked_for_later():
    page = made()
    texts = carried(page)
    asked_for = set(re.findall(r'(?:href|src)="\./static/js/([^"]+)"', page))
    assert not asked_for & set(texts), "asked for though it is here"
    late = [path.name for name in DRAWN_FIRST for path in SCRIPTS.glob(f"{name}.*.js")]
    assert len(late) == len(DRAWN_FIRST), "Streamlit calls one of them otherwise now"
    assert {*late, *re.findall(r'src="\./static/js/([^"]+)"', INDEX)} <= asked_for | set(texts)
    for name in asked_for | set(texts):
        whole = (SCRIPTS / name).read_text(encoding="utf-8")
        for other in re.findall(r'\b(?:from|import)"\./([^"]+)"', whole):
            assert other in asked_for or other in texts, (name, other)
    assert 'src="./placement/canvas-1.js"' in page


def test_a_page_that_is_built_otherwise_stays_as_it_is():
    assert first_page("<html></html>", SCRIPTS, "x.js", "") == "<html></html>"


def test_whoever_goes_to_a_page_gets_it_and_nobody_else():
    index = INDEX.encode()
    app = server(index)
    status, headers, body = asked(PageScripts(app), "/", headers=GOING)
    assert status == 200 and carried(body.decode()) == carried(made())
    assert headers == {
        "content-length": str(len(body)),
        "content-type": "text/html",
        "x-frame-options": "DENY",
    }
    assert not {b"accept-encoding", b"if-none-match"} & {name.lower() for name in app.asked}
    assert asked(PageScripts(app), "/", headers=GOING[1:])[2] == index
    assert b"if-none-match" in {name.lower() for name in app.asked}


def test_other_answers_go_on_as_they_are():
    pieces = [b"<html>", b"</html>"]
    assert asked(PageScripts(server(b"", pieces=pieces)), "/x", headers=GOING)[1]["etag"] == "x"
    assert asked(PageScripts(server(b"", pieces=pieces)), "/x", headers=GOING)[2] == b"".join(
        pieces
    )
    assert asked(PageScripts(teapot), "/x", headers=GOING)[0] == 418


def test_the_canvas_has_an_address_by_its_content():
    path = f"/{canvas_scripts.library_path()}"
    status, headers, body = asked(PageScripts(teapot), path)
    assert status == 200 and body.decode() == canvas_scripts.library_script()
    assert headers["content-type"].startswith("text/javascript")
    assert "immutable" in headers["cache-control"]
    assert canvas_scripts.library_path() in canvas_scripts.component_script(served=True)
    assert len(canvas_scripts.component_script(served=True)) < 1000
    assert canvas_scripts.library_script() in canvas_scripts.component_script(served=False)
