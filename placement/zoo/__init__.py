"""Well-known networks as short modules, one file each; the folder listing is the registry.

Each file has `build(sizes)` -> (module, inputs, targets, loss) with the sizes that it names in
`SIZES`: what may be set, and its default. Weights are those of the framework's own initialisers.
`SOURCE` says where the network is from, `NUM_OPS` its ops for inference and for training with the
usual sizes: plain constants, so that listing the networks imports and builds none.
"""
