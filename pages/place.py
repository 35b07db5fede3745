"""Place page: let a method decide, then move ops by hand and watch the prediction."""

from pages.ui import frame, placing, workbench
from pages.ui.current import studio

frame.around()
placing.show(studio())
workbench.show()
placing.command()
