"""What-if page: the placement on a machine with faster, slower or smaller parts."""

from pages.ui.session.current import studio
from pages.ui.shell import frame
from pages.ui.what_if import ask_method, comparison

frame.around()
now = studio()
comparison.show()
ask_method.show(now)
