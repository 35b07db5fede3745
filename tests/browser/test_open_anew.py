"""A page that Streamlit's browser side gives up for good is opened anew, and once only."""

import re

import pytest
from google.protobuf.message import DecodeError
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.studio import PATIENCE_MS, drawn

SOCKET = re.compile(r"^ws://127\.0\.0\.1:\d+/.*")


class Losing:
    """Lets everything through but a container, without which nothing in it can be drawn.

    It does so at the first so many loads of the page.
    """

    def __init__(self, page, num_losses):
        self.num_losses, self.num_loads = num_losses, 0
        page.on("request", self._asked)
        page.route_web_socket(SOCKET, self._opened)

    def _asked(self, request):
        self.num_loads += request.is_navigation_request()

    def _opened(self, socket):
        server, is_waiting = socket.connect_to_server(), self.num_loads <= self.num_losses

        def passed(message):
            nonlocal is_waiting
            if is_waiting and is_container(message):
                is_waiting = False
            else:
                socket.send(message)

        server.on_message(passed)


def is_container(message):
    try:
        found = ForwardMsg.FromString(message)
    except (DecodeError, TypeError):
        return False
    return found.HasField("delta") and found.delta.WhichOneof("type") == "add_block"


@pytest.fixture
def losing(guest, studio_url, project_about):
    """Open a page that loses a container, as often as it is told; its errors are wanted here."""
    pages = []

    def opened(num_losses):
        page = guest.new_page()
        pages.append(page)
        lost = Losing(page, num_losses)
        page.goto(f"{studio_url}/{project_about(model='onnx-squeezenet')}")
        return page, lost

    yield opened
    for page in pages:
        page.evaluate("localStorage.clear()")
        page.close()


def test_a_page_that_was_given_up_is_opened_anew(losing):
    page, lost = losing(1)
    drawn(page)
    assert lost.num_loads == 2
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_one_that_is_given_up_again_says_so(losing):
    page, lost = losing(9)
    expect(page.locator("#root")).to_contain_text("could not be drawn", timeout=PATIENCE_MS)
    assert lost.num_loads == 2
