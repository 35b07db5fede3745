"""The address of the timelines, which are on the Studio page: in the dock."""

from pages.ui.desk import dock
from pages.ui.shell import frame

frame.around()
dock.lead_to(dock.TIMELINE)
