"""The graph canvas: a model drawn as collapsible blocks, coloured and edited by device.

How a page uses it, in the order of the calls:

    # app.py, once, before page.run(): sends the drawing library to the browser
    canvas.mount_library()

    # page: derive everything from the graph and the set of open groups (strings, session-safe)
    expanded = canvas.default_expanded(graph)               # frozenset of group ids ("s5")
    view = canvas.build_view(graph, expanded)               # cached by fingerprint and set
    keys = canvas.device_keys([d.name for d in machine.devices])   # names -> colours

    @st.fragment(key="store")                               # its own fragment: large, seldom sent
    def store():
        canvas.mount_view(view)

    @st.fragment(key="canvas")
    def draw():
        paint = canvas.paint(view, device_of_op, len(keys)) # device index per op, -1 for none
        drawing = canvas.Drawing(view=view, paint=paint, devices=keys, selection=names)
        canvas.draw_canvas(drawing, on_ops=on_ops)

    def on_ops():                                           # callback: apply, then a cheap rerun
        for gesture in outbox.unread("canvas", GESTURES):
            ...                                             # outbox.applied("canvas", gesture)
        st.rerun(["canvas", "side"])                        # with "store" first after an expansion

What a gesture says stands in `messages.py`.

`Drawing(..., tones=...)` colours the cards by something else than the device: `tones_by_class`
makes the tones of categories, `tones_by_value` those of amounts.

`ops_inside(graph, nodes)` turns node ids into op names (a group stands for its ops), and
`toggled(graph, expanded, node)` gives the new set of open groups. Python's word is final: colours
and selection drawn at once in the browser are replaced by what `draw_canvas` sends next.
"""

from pages.ui.canvas.component import draw_canvas, mount_library, mount_view
from pages.ui.canvas.drawing import Drawing, Editing
from pages.ui.canvas.network import network
from placement.drawing.colours.painting import opacity_marks, ops_of, paint, selection_marks
from placement.drawing.colours.palette import DeviceKey, device_colour, device_keys
from placement.drawing.colours.toning import Tones, sums_by_node
from placement.drawing.colours.toning import by_class as tones_by_class
from placement.drawing.colours.toning import by_value as tones_by_value
from placement.drawing.crossing import crossings, path_lines
from placement.drawing.layout.expansion import (
    FIRST_SIGHT,
    PRESENTED_SIGHT,
    all_groups,
    all_visible,
    default_expanded,
    reveal,
    toggled,
)
from placement.drawing.layout.scopes import ops_inside, scope_tree
from placement.drawing.searching import related, search
from placement.drawing.views import View, build_view

__all__ = [
    "FIRST_SIGHT",
    "PRESENTED_SIGHT",
    "DeviceKey",
    "Drawing",
    "Editing",
    "Tones",
    "View",
    "all_groups",
    "all_visible",
    "build_view",
    "crossings",
    "default_expanded",
    "device_colour",
    "device_keys",
    "draw_canvas",
    "mount_library",
    "mount_view",
    "network",
    "opacity_marks",
    "ops_inside",
    "ops_of",
    "paint",
    "path_lines",
    "related",
    "reveal",
    "scope_tree",
    "search",
    "selection_marks",
    "sums_by_node",
    "toggled",
    "tones_by_class",
    "tones_by_value",
]
