"""Timeline page: one step as predicted and as measured, what decides it, and who holds memory."""

from pages.ui import analysis, frame, timelines, workbench

frame.around()
timelines.show()
workbench.show(numbers=False, height=480)
analysis.show()
