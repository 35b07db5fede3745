"""Colours as eyes see them, colour-blind ones too, for tests of what has to stay apart."""

import numpy as np

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as the colour-blind see it.
BLIND = {
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# Who sees no colours at all tells by lightness alone; hatches are for them.
GREY = ((0.2126, 0.7152, 0.0722),) * 3
TO_XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))


def lab(colour, seen=None):
    """CIE L*a*b* of #rrggbb, as seen by the colour-blind where `seen` is a matrix."""
    return lab_of(np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]), seen)


def lab_of(pixels, seen=None):
    """The same of pixels of any shape, their last axis red, green and blue from 0 to 255."""
    rgb = np.asarray(pixels) / 255
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if seen is not None:
        rgb = np.clip(rgb @ np.array(seen).T, 0, 1)
    xyz = rgb @ TO_XYZ.T / np.array((0.9505, 1.0, 1.089))
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack((116 * y - 16, 500 * (x - y), 200 * (y - z)), axis=-1)
