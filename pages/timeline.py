"""Timeline page: one step as predicted and as measured, what decides it, and who holds memory."""

from pages.ui.panels import editor
from pages.ui.shell import frame
from pages.ui.timeline import analysis, timelines

frame.around()
timelines.show()
editor.show(numbers=False, height=480)
analysis.show()
