"""One key's cell, and short words for the events that it gets."""

from pa_river import PA1, PAClassifier
from pa_river.stream import CellSpec, Event

A = {"a": 1.0}


def spec(C=1.0, **settings):
    return CellSpec(PAClassifier(PA1(C), learn_intercept=False), **settings)


def run(held, *events):
    return [output for event in events for output in held.on_event(event)]


def ask(id, time, x=A, **more):
    return Event("k", id, time, x=x, **more)


def tell(id, time, y, **more):
    return Event("k", id, time, y=y, **more)
