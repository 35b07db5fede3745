"""Devices page: the machine to place on, and what its devices were measured to cost."""

from pages.ui.devices import machine_choice, measurement
from pages.ui.session.current import studio
from pages.ui.shell import frame, job_status
from studio.jobs import command_line

frame.around()
now = studio()
machine_choice.chooser(now)
machine_choice.drawn(now)
# Above the tables: what a visitor does here next is in sight without scrolling.
measurement.show(now)
machine_choice.tables(now)
job_status.command_box(command_line.machine(now.project))
