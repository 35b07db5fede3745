"""The tab in which a method is followed step by step."""
