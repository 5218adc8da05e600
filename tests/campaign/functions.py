# SPDX-License-Identifier: Apache-2.0
"""Elementary functions and their derivatives in float64, and the values where float32 goes wrong."""
import math

import numpy as np

#: Around the ends of exp, log1p and tanh in float32, of squares, and of the format itself.
MAGNITUDES = [0.0, 1.2e-38, 1e-30, 1e-20, 1e-9, 1e-7, 6e-8, 1e-4, 0.1, 0.5, 1, 1.5, 2.5, 5, 8.7, 9.1, 12.3, 16.7, 17.4, 25,
              87.3, 88.7, 88.8, 103, 104, 1e3, 1e4, 16777216, 1e10, 1e18, 1.9e19, 1e20, 1e30, 3.4e38]
SPECIAL = [math.inf, -math.inf, math.nan]


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def expm1(x):
    return np.expm1(np.minimum(x, 0))


def exp_below(x):
    return np.exp(np.minimum(x, 0))


def erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_tanh_slope(x):
    x = np.clip(x, -50, 50)
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def gelu_slope(x):
    return 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def mish(x):
    return np.where(np.isneginf(x), -0.0, x * np.tanh(softplus(x)))


def mish_slope(x):
    t = np.tanh(softplus(x))
    return t + x * (1 - t * t) * sigmoid(x)


def hard_sigmoid(x, alpha, beta):
    return np.clip(alpha * x + beta, 0, 1)


def inside(x, alpha, beta):
    y = alpha * x + beta
    return (y >= 0) & (y <= 1)


SELU_ALPHA, SELU_GAMMA = float(np.float32(1.67326319)), float(np.float32(1.05070102))
SIXTH = float(np.float32(1 / 6))

#: name: (operator, attributes, f, slope, absolute error relative to 1 where the float32 formula cancels).
#: Slopes are one-sided where a function has two.
FUNCTIONS = {
    "Elu": ("Elu", {}, lambda x: np.where(x > 0, x, expm1(x)), lambda x: np.where(x > 0, 1, exp_below(x)), 0),
    "Elu 0.3": ("Elu", {"alpha": 0.3}, lambda x: np.where(x > 0, x, 0.3 * expm1(x)),
                lambda x: np.where(x > 0, 1, 0.3 * exp_below(x)), 0),
    "Selu": ("Selu", {}, lambda x: SELU_GAMMA * np.where(x > 0, x, SELU_ALPHA * expm1(x)),
             lambda x: SELU_GAMMA * np.where(x > 0, 1, SELU_ALPHA * exp_below(x)), 0),
    "Celu": ("Celu", {"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * expm1(x / 2)),
             lambda x: np.where(x > 0, 1, exp_below(x / 2)), 0),
    "Softplus": ("Softplus", {}, softplus, sigmoid, 0),
    "Softsign": ("Softsign", {}, lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + np.abs(x)) ** 2, 0),
    "Mish": ("Mish", {}, mish, mish_slope, 4e-7),
    "Gelu": ("Gelu", {}, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), gelu_slope, 1e-6),
    "Gelu tanh": ("Gelu", {"approximate": "tanh"}, gelu_tanh, gelu_tanh_slope, 1e-6),
    "Sigmoid": ("Sigmoid", {}, sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 2e-7),
    "Tanh": ("Tanh", {}, np.tanh, lambda x: 1 - np.tanh(x) ** 2, 3e-7),
    "Erf": ("Erf", {}, erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), 3e-7),
    "Exp": ("Exp", {}, np.exp, np.exp, 0),
    "Log": ("Log", {}, np.log, lambda x: 1 / x, 2e-7),
    "Sqrt": ("Sqrt", {}, np.sqrt, lambda x: 0.5 / np.sqrt(x), 0),
    "Reciprocal": ("Reciprocal", {}, lambda x: 1 / x, lambda x: -1 / x**2, 0),
    "Neg": ("Neg", {}, lambda x: -x, lambda x: -np.ones_like(x), 0),
    "Abs": ("Abs", {}, np.abs, np.sign, 0),
    "Sign": ("Sign", {}, np.sign, lambda x: np.zeros_like(x), 0),
    "Relu": ("Relu", {}, lambda x: np.where(x <= 0, 0, x), lambda x: np.where(x > 0, 1.0, 0.0), 0),
    "LeakyRelu": ("LeakyRelu", {"alpha": 0.25}, lambda x: np.where(x > 0, x, 0.25 * x),
                  lambda x: np.where(x > 0, 1, 0.25), 0),
    "HardSigmoid": ("HardSigmoid", {"alpha": 0.25, "beta": 0.5}, lambda x: hard_sigmoid(x, 0.25, 0.5),
                    lambda x: np.where(inside(x, 0.25, 0.5), 0.25, 0.0), 1e-7),
    "HardSwish": ("HardSwish", {}, lambda x: x * hard_sigmoid(x, SIXTH, 0.5),
                  lambda x: hard_sigmoid(x, SIXTH, 0.5) + np.where(inside(x, SIXTH, 0.5), SIXTH * x, 0.0), 1e-6),
    "ThresholdedRelu": ("ThresholdedRelu", {"alpha": 1.0}, lambda x: np.where(x > 1, x, 0.0),
                        lambda x: np.where(x > 1, 1.0, 0.0), 0),
}


def log_sum_exp(x, axis):
    most = np.max(x, axis=axis, keepdims=True)
    base = np.where(np.isinf(most), 0, most)
    return np.log(np.sum(np.exp(x - base), axis=axis, keepdims=True)) + base


def norm(x, axis):
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=True))


def norm_slope(x, axis):
    y = norm(x, axis)
    return x / np.where(y == 0, 1, y)


def unit(x, axis):
    y = norm(x, axis)
    return x / np.where(y == 0, 1, y)


def softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def ones(x, axis):
    return np.ones_like(x)


def extreme_slope(pick):
    def slope(x, axis):
        is_most = x == pick(x, axis=axis, keepdims=True)
        return is_most / np.sum(is_most, axis=axis, keepdims=True)
    return slope


#: name: (operator, f, slope, error of f relative to what) with one axis that keeps the size 1.
REDUCTIONS = {
    "ReduceMax": (lambda x, axis: np.max(x, axis=axis, keepdims=True), extreme_slope(np.max)),
    "ReduceMin": (lambda x, axis: np.min(x, axis=axis, keepdims=True), extreme_slope(np.min)),
    "ReduceSum": (lambda x, axis: np.sum(x, axis=axis, keepdims=True), ones),
    "ReduceMean": (lambda x, axis: np.mean(x, axis=axis, keepdims=True), lambda x, axis: ones(x, axis) / x.shape[axis]),
    "ReduceL1": (lambda x, axis: np.sum(np.abs(x), axis=axis, keepdims=True), lambda x, axis: np.sign(x)),
    "ReduceL2": (norm, norm_slope),
    "ReduceSumSquare": (lambda x, axis: np.sum(x * x, axis=axis, keepdims=True), lambda x, axis: 2 * x),
    "ReduceLogSumExp": (log_sum_exp, softmax),
}
