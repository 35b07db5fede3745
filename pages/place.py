"""The address of placing by a method, which is on the Studio page: in the strip."""

from pages.ui.desk import dock
from pages.ui.shell import frame

frame.around()
dock.lead_to(dock.TIMELINE)
