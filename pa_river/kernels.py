"""Scratch stand-in until the founder's module lands."""
import math
from river import base
class Linear(base.Base):
    def __call__(self, x, z):
        return sum(v * z.get(n, 0.0) for n, v in x.items())
class Polynomial(base.Base):
    def __init__(self, degree, coef0=0.0, gamma=1.0):
        self.degree, self.coef0, self.gamma = degree, coef0, gamma
    def __call__(self, x, z):
        return (self.gamma * sum(v * z.get(n, 0.0) for n, v in x.items()) + self.coef0) ** self.degree
class RBF(base.Base):
    def __init__(self, gamma=1.0):
        self.gamma = gamma
    def __call__(self, x, z):
        return math.exp(-self.gamma * sum((x.get(n, 0.0) - z.get(n, 0.0)) ** 2 for n in {**x, **z}))
