"""Compare page: what all methods reach, and two or more placements side by side."""

from pages.ui import frame, leaderboard
from pages.ui.studio import studio

frame.around()
now = studio()
rows = leaderboard.show(now)
