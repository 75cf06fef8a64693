"""Doubles and floats on which a text can go wrong, drawn from a seed; both by their bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64] | npt.NDArray[np.float32]


def doubles(count: int, seed: int) -> npt.NDArray[np.float64]:
    """About ``count`` doubles of all kinds (the fixed edges on top), neither NaN nor infinite."""
    random = np.random.default_rng(seed)
    n = count // 5
    exponents = random.integers(-324, 309, n)
    kinds = [
        _edges(np.dtype(np.float64)),
        random.integers(0, 2**64, n, dtype=np.uint64).view(np.float64),  # any bits
        _decimal_looking(random, n, digits=17).astype(np.float64),
        random.integers(-(2**63), 2**63, n, dtype=np.int64).astype(np.float64)
        / 2.0 ** random.integers(0, 64, n),
        np.array([float(f"{d}e{e}") for d, e in zip(random.integers(1, 1000, n), exponents, strict=True)]),
        random.integers(0, 2**54, n, dtype=np.uint64).astype(np.float64) * 2.0 ** random.integers(0, 16, n),
    ]
    return _finite(np.concatenate(kinds))


def floats(count: int, seed: int) -> npt.NDArray[np.float32]:
    """About ``count`` floats of all kinds (the fixed edges on top), neither NaN nor infinite."""
    random = np.random.default_rng(seed)
    n = count // 4
    with np.errstate(over="ignore", under="ignore"):
        kinds = [
            _edges(np.dtype(np.float32)),
            random.integers(0, 2**32, 2 * n, dtype=np.uint32).view(np.float32),  # any bits
            _decimal_looking(random, n, digits=9).astype(np.float32),
            (random.integers(-(2**31), 2**31, n) * 2.0 ** random.integers(-64, 64, n)).astype(np.float32),
        ]
    return _finite(np.concatenate(kinds))


def _edges(dtype: np.dtype[np.floating]) -> Floats:
    """Powers of two and ten, subnormals, the ends of the plain range, each with its neighbours."""
    with np.errstate(over="ignore", under="ignore"):
        powers_of_two = np.ldexp(1.0, np.arange(-1074, 1024))
        powers_of_ten = np.array([float(f"1e{e}") for e in range(-323, 309)])
        tens = np.concatenate([powers_of_ten * d for d in (1, 2, 5, 9, 9.9, 9.99)])
        plain_range = np.array([1e-3, 1e7, 1e6, 123456.7, 9999999.999999998, 2.0e-3, 1e23, 2e23, 9.5e-4])
        small = np.concatenate([np.arange(300, dtype=np.float64), np.arange(300) * np.float64(5e-324)])
        middle = np.concatenate([powers_of_two, tens, plain_range, small]).astype(dtype)
    extremes = np.array(
        [np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal], dtype
    )
    middle = np.concatenate([middle[np.isfinite(middle)], extremes, np.arange(300) * extremes[2]])
    bits = middle.view(np.uint64 if dtype.itemsize == 8 else np.uint32)
    near = np.concatenate([bits + np.array(step).astype(bits.dtype) for step in (0, 1, 2, -1, -2)])
    values = near.view(dtype)
    return np.concatenate([values, -values])


def _decimal_looking(random: np.random.Generator, n: int, *, digits: int) -> npt.NDArray[np.float64]:
    whole = random.integers(0, 10 ** random.integers(1, digits + 1, n))
    sign = random.choice([-1.0, 1.0], n)
    return sign * whole / 10.0 ** random.integers(0, digits, n)


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]
