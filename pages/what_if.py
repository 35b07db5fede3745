"""The address of asking what if, which is on the Studio page: in the dock."""

from pages.ui.desk import dock
from pages.ui.shell import frame

frame.around()
dock.lead_to(dock.WHAT_IF)
