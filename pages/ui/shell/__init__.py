"""What is around every page: frame, messages, the model being opened, the next step."""
