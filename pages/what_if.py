"""What-if page: the placement on a machine with faster, slower or smaller parts."""

from pages.ui import asking, frame, whatif
from pages.ui.current import studio

frame.around()
now = studio()
whatif.show()
asking.show(now)
