"""The loops of learning, compiled: values of batches, roll-outs, draws, regions and features."""
