"""The Studio page: cause, effect and score on one screen that does not scroll."""
