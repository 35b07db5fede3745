"""Steps of placers whose files they would overfill: what each works out, made into pictures."""
