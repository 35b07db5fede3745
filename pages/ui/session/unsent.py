"""What a browser has not been sent yet of a part that is drawn anew goes with all that is in it.

Where a fragment begins again, Streamlit takes out of the session's queue what the fragment had
drawn before, but not what fragments inside it had, nor what stands for a large element that the
browser has already. These would come without the containers that they stand in, and the browser
gives the page up ("Bad delta path index", Streamlit 1.67). On a quiet computer the queue is empty
by then.
"""

from collections.abc import Collection
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_PATCHED = "goes_whole"
# By the name of a fragment, where on the page its container stands: the name is made of that.
_PLACES = "places_of_fragments"
Place = tuple[int, ...]


def go_whole() -> None:
    """From now on; Streamlit has no hook for it, so it is put right in the queue."""
    if hasattr(ForwardMsgQueue, _PATCHED):
        return
    setattr(ForwardMsgQueue, _PATCHED, True)
    enqueue: Any = ForwardMsgQueue.enqueue
    clear: Any = ForwardMsgQueue.clear

    def note_and_enqueue(queue: Any, message: ForwardMsg) -> None:
        """The first that a fragment draws is its container."""
        if message.HasField("delta") and message.delta.fragment_id:
            places = vars(queue).setdefault(_PLACES, {})
            places.setdefault(message.delta.fragment_id, place_of(message))
        enqueue(queue, message)

    def clear_whole(
        queue: Any,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: Collection[str] | None = None,
    ) -> None:
        clear(queue, retain_lifecycle_msgs, fragment_ids_this_run)
        places = vars(queue).get(_PLACES, {})
        anew = [places[name] for name in fragment_ids_this_run or () if name in places]
        queue._queue = [each for each in queue._queue if not stands_in(each, anew)]

    for name, made in (("enqueue", note_and_enqueue), ("clear", clear_whole)):
        setattr(ForwardMsgQueue, name, made)


def place_of(message: ForwardMsg) -> Place:
    return tuple(message.metadata.delta_path)


def stands_in(message: ForwardMsg, places: Collection[Place]) -> bool:
    """Whether a message draws something in one of these places of a page."""
    drawn = message.WhichOneof("type") in ("delta", "ref_hash")
    return drawn and any(place_of(message)[: len(place)] == place for place in places)
