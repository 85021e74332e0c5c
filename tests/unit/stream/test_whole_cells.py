"""What is done to a key's model as a whole: snapshots, expiry and return, reset, rollback, forgetting."""

from __future__ import annotations

from pa_river import loads, state
from pa_river.stream import CellSpec, Drift, Event, Snapshot, checksum
from tests.strategies_stream import Bomb
from tests.unit.stream.one_key import A, ask, run, spec, tell


def test_the_whole_cell_leaves_at_the_end_if_it_is_to_be_kept():
    held = spec(at_end="snapshot").open("k", None)
    run(held, Event("k", "1", 0.0, A, True), ask("2", 1.0))
    (snapshot,) = held.on_end()
    assert (snapshot.reason, snapshot.version, loads(snapshot.model).weights) == ("end", 1, {"a": 1.0})
    assert held.dumps() is not None


def test_snapshots_come_every_so_many_versions():
    held = spec(snapshot_every=2).open("k", None)
    outputs = run(held, *[Event("k", str(i), float(i), A, i % 2 == 0) for i in range(5)])
    assert [(o.version, o.reason) for o in outputs if isinstance(o, Snapshot)] == [(2, "periodic"), (4, "periodic")]


class Reader:
    def __init__(self, snapshot):
        self.snapshot = snapshot

    def newest(self, key):
        return self.snapshot if key == "k" else None


def test_a_key_that_returns_is_fresh_or_goes_on_where_it_was():
    first = spec(idle_ttl=10.0, label_ttl=10.0).open("k", None)
    run(first, Event("k", "1", 1.0, A, True))
    (snapshot,) = first.on_due(100.0)
    again = spec(idle_ttl=10.0, label_ttl=1e3, on_return="restore", reader=Reader(snapshot)).open("k", None)
    (said,) = run(again, ask("2", 200.0))
    assert (said.prediction, said.version) == (True, 1)
    assert again._cells["k"].generation == 1000
    assert run(again, Event("k", "1", 201.0, A, True)) == []  # its ids are known still
    other = spec(on_return="restore", reader=Reader(None)).open("k", None)
    assert run(other, ask("2", 200.0))[0].version == 0


def test_reset_and_rollback_answer_with_a_drift_record_and_raise_the_version():
    held = spec(keep_every=1).open("k", None)
    run(held, Event("k", "1", 1.0, A, True), Event("k", "2", 2.0, {"b": 2.0}, True))
    (answer,) = run(held, Event("k", "r", 3.0, op="reset"))
    assert answer == Drift(
        "k", 3.0, None, "reset", {"target": None, "result": "reset to the untrained model", "parent": None}, 3)
    assert held.model().weights == {}
    assert run(held, Event("k", "r", 3.0, op="reset")) == []  # delivered twice, done once
    held = spec(keep_every=1).open("k", held.dumps())
    (answer,) = run(held, Event("k", "b", 4.0, op="rollback", target=1))
    assert (answer.version, answer.evidence["parent"]) == (4, 1)
    assert held.model().weights == {"a": 1.0}
    (refused,) = run(held, Event("k", "c", 5.0, op="rollback", target=1, checksum="0" * 32))
    assert (refused.stage, "kept are" in refused.reason) == ("control", True)
    (back,) = run(held, Event("k", "d", 6.0, op="rollback", target=2))
    assert held.model().weights == {"a": 1.0, "b": 0.5}
    assert back.version == 5
    wrong = Event("k", "e", 7.0, op="rollback", target=4, checksum="0" * 32)
    assert "checksum" in run(held, wrong)[0].reason
    (kept,) = [model for version, _, model in held._cells["k"].old_models() if version == 4]
    right = wrong._replace(id="f", checksum=checksum(kept))
    assert run(held, right)[0].version == 6
    assert held.counts() == {"duplicates": 1, "rejected": 2}


@state.storable
class Remembers(Bomb):
    """Keeps its examples, and can give one up."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def learn_one(self, x, y, w=1.0, *, id=None):
        self.kept[id] = (dict(x), y)

    def unlearn_one(self, x=None, y=None, *, id=None):
        del self.kept[id]

    def _get_state(self):
        return self.kept

    def _set_state(self, values):
        self.kept = values


def test_forget_takes_an_example_out_of_a_model_that_can_and_out_of_what_waits():
    held = CellSpec(Remembers()).open("k", None)
    run(held, Event("k", "1", 1.0, A, True), ask("2", 2.0), tell("2", 3.0, False), ask("3", 4.0))
    (gone,) = run(held, Event("k", "f1", 5.0, op="forget", target="1"))
    assert (gone.action, gone.evidence["result"], gone.version) == ("forget", "removed from the model", 3)
    assert list(held.model().kept) == ["2"]
    (unknown,) = run(held, Event("k", "f2", 6.0, op="forget", target="1"))
    assert (unknown.stage, unknown.reason) == ("control", "KeyError: '1'")
    orphan, answer = run(held, Event("k", "f3", 7.0, op="forget", target="3"))
    assert (orphan.id, orphan.kind, answer.evidence["result"]) == ("3", "unlabelled", "dropped before it was learned")
    assert run(held, tell("3", 8.0, True))[0].kind == "late"


def test_a_model_that_cannot_forget_rejects_the_request():
    held = spec().open("k", None)
    run(held, Event("k", "1", 1.0, A, True))
    (refused,) = run(held, Event("k", "f", 2.0, op="forget", target="1"))
    assert (refused.tag, refused.stage, "unlearn_one" in refused.reason) == ("rejected", "control", True)
