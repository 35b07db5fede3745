""".pt2 archives: read as values, operators listed by name, arguments checked."""
