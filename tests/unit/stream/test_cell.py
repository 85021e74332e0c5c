"""The cell on one key, event by event: the scenarios of its contract, worked out by hand."""

from __future__ import annotations

import math

import pytest
from pa_river import PA1, PAClassifier, StateError
from pa_river.stream import CellSpec, Event, Orphan, Outcome, Prediction, Rejected
from river import preprocessing
from tests.strategies_stream import Bomb
from tests.unit.stream.one_key import A, ask, run, spec, tell


def test_late_early_missing_and_unknown_labels_each_end_as_the_contract_says():
    held = spec(label_ttl=10.0).open("k", None)
    outputs = run(held, ask("id1", 0.0), ask("id2", 1.0))
    assert [output.prediction for output in outputs] == [False, False]

    (second,) = run(held, tell("id2", 2.0, True))
    assert (second.prediction, second.loss, second.delay, second.version) == (False, 1.0, 1.0, 0)
    assert held.model().weights == {"a": 1.0}

    (first,) = run(held, tell("id1", 5.0, True))
    assert (first.prediction, first.loss) == (False, 1.0)  # what was said at t0, not what the model knows by now
    assert held.model().weights == {"a": 1.0}  # passive

    assert run(held, tell("id9", 6.0, True)) == []
    assert [output.tag for output in run(held, ask("id3", 7.0))] == ["predictions"]
    assert run(held, tell("id4", 8.0, True)) == []
    said, outcome = run(held, ask("id4", 9.0))
    assert (said.prediction, outcome.delay, outcome.version) == (True, -1.0, 2)
    assert held.version() == 3

    left = held.on_due(60.0)
    assert left == [
        Orphan("k", "id9", 16.0, "no_features", True, None), Orphan("k", "id3", 17.0, "unlabelled", None, True),
    ]
    cell = held._cells["k"]
    assert (cell.pending.ids(), cell.pending.bytes, cell.early.ids()) == ([], 0, [])
    assert held.version() == 3


@pytest.mark.parametrize("pipeline", [False, True])
def test_an_example_that_fails_in_the_middle_of_learning_leaves_the_stream_without_it(pipeline):
    model = Bomb()
    good = [Event("k", "1", 1.0, {"a": 2.0, "b": 1.0}, True), Event("k", "3", 3.0, {"a": -1.0, "b": -4.0}, False)]
    bad = Event("k", "2", 2.0, {"a": 5.0, "b": 13.0}, True, segment="s")
    if pipeline:  # of two examples the larger is scaled to 1, and the scaler has learned it when the bomb goes off
        model = preprocessing.StandardScaler() | Bomb(fuse=1.0)
    held, clean = CellSpec(model).open("k", None), CellSpec(model).open("k", None)
    outputs = run(held, good[0], bad, good[1])
    run(clean, *good)
    rejected = [output for output in outputs if isinstance(output, Rejected)]
    assert [(r.key, r.id, r.stage, r.reason) for r in rejected] == [("k", "2", "learn", "ZeroDivisionError: halfway")]
    assert '"b": 13.0' in rejected[0].payload
    assert held.version() == 2
    assert held.drain_counts() == {"rejected": 1}
    assert held._cells["k"].model_bytes() == clean._cells["k"].model_bytes()


@pytest.mark.parametrize("scaled", [False, True])
def test_a_feature_that_is_not_finite_is_refused_and_the_rest_learned(scaled):
    model = preprocessing.StandardScaler() | PAClassifier() if scaled else PAClassifier()
    good = [Event("k", "ok1", 1.0, {"a": 1.0, "b": 2.0}, True), Event("k", "ok2", 3.0, {"a": -1.0, "b": 1.0}, False)]
    held, clean = CellSpec(model).open("k", None), CellSpec(model).open("k", None)
    outputs = run(held, good[0], Event("k", "bad", 2.0, {"a": 1.0, "b": math.inf}, True), good[1])
    run(clean, *good)
    (rejected,) = [output for output in outputs if isinstance(output, Rejected)]
    assert (rejected.key, rejected.id, "'b'" in rejected.reason) == ("k", "bad", True)
    assert held.version() == 2
    assert held._cells["k"].model_bytes() == clean._cells["k"].model_bytes()


def test_the_same_example_delivered_twice_is_learned_once():
    held = spec(C=0.1).open("k", None)
    outputs = run(held, *[Event("k", "1", 0.0, A, True)] * 2)
    assert [output.tag for output in outputs] == ["predictions", "outcomes"]
    assert held.model().weights == {"a": 0.1}
    assert held.counts() == {"duplicates": 1}


def test_an_idle_key_expires_before_its_next_event_is_handled():
    held = spec(idle_ttl=10.0).open("k", None)
    run(held, Event("k", "1", 1.0, A, True), Event("k", "2", 2.0, A, True), ask("open", 2.0))
    orphan, snapshot, said = run(held, ask("3", 100.0))
    assert orphan == Orphan("k", "open", 12.0, "unlabelled", None, True)
    assert (snapshot.version, snapshot.reason, snapshot.generation, snapshot.time) == (2, "idle", 1000, 12.0)
    assert (said.prediction, said.version) == (False, 0)
    assert held._cells["k"].generation == 100_000
    held.on_due(1000.0)
    assert held.dumps() is None


def test_a_deadline_is_met_by_an_equal_time_and_missed_by_a_later_one():
    for late, tag in ((10.0, "outcomes"), (10.000001, "orphans")):
        held = spec(label_ttl=10.0).open("k", None)
        assert run(held, ask("1", 0.0), tell("1", late, True))[-1].tag == tag


def test_what_is_known_of_an_id_decides_what_its_next_event_is():
    held = spec(label_ttl=10.0).open("k", None)
    run(held, ask("1", 0.0), tell("1", 1.0, True))
    assert run(held, ask("1", 2.0), tell("1", 2.0, 1), Event("k", "1", 2.0, A, True)) == []  # 1 is True
    assert run(held, tell("1", 3.0, False)) == [Orphan("k", "1", 3.0, "corrected", False, None)]
    assert run(held, ask("1", 4.0, {"a": 2.0}))[0].reason == "id seen before with other features"
    run(held, ask("2", 4.0))
    assert run(held, ask("2", 5.0)) == []
    assert run(held, ask("2", 5.0, {"b": 1.0}))[0].stage == "validate"
    (left, late) = run(held, tell("2", 14.5, True))
    assert (left.kind, left.time, late.kind, late.y) == ("unlabelled", 14.0, "late", True)
    assert held.version() == 1
    assert held.counts() == {"duplicates": 4, "corrected": 1, "rejected": 2, "unlabelled": 1, "late": 1}


def test_the_first_label_of_an_id_counts_wherever_its_features_come():
    held = spec(label_ttl=10.0).open("k", None)
    assert run(held, tell("1", 0.0, True), tell("1", 1.0, True)) == []
    assert run(held, tell("1", 1.0, False))[0].kind == "corrected"
    said, outcome, corrected = run(held, Event("k", "1", 2.0, A, False))
    assert (outcome.y, corrected.kind, corrected.y) == (True, "corrected", False)
    assert held.model().weights == {"a": 1.0}


def test_features_that_come_after_their_label_expired_are_new_and_its_copy_is_a_duplicate():
    held = spec(label_ttl=10.0).open("k", None)
    run(held, tell("1", 0.0, True))
    (left,) = run(held, tell("1", 11.0, True))
    assert left.kind == "no_features"
    assert held.counts()["duplicates"] == 1
    assert [output.tag for output in run(held, ask("1", 12.0))] == ["predictions"]


def test_a_refused_label_leaves_the_prediction_waiting_for_a_better_one():
    held = spec().open("k", None)
    refused, outcome = run(held, ask("1", 0.0), tell("1", 1.0, "yes"), tell("1", 2.0, True))[1:]
    assert (refused.stage, "PAMulticlass" in refused.reason) == ("validate", True)
    assert outcome.y is True


def test_the_weight_and_segment_of_the_label_win_over_those_of_the_features():
    held = spec(C=0.1).open("k", None)
    outputs = run(held, ask("1", 0.0, w=10.0, segment="x"), tell("1", 1.0, True, w=2.0))
    assert held.model().weights == {"a": 0.2}
    assert outputs[-1].segment == "x"
    run(held, ask("2", 2.0), tell("2", 3.0, False, w=0.0))
    assert held.version() == 1  # weight 0: evaluated, not learned


def test_what_does_not_fit_leaves_oldest_first_and_is_counted():
    held = spec(max_pending=2).open("k", None)
    outputs = run(held, *[ask(str(i), float(i)) for i in range(3)], *[tell(f"y{i}", 3.0, True) for i in range(3)])
    orphans = [output for output in outputs if isinstance(output, Orphan)]
    assert [(orphan.id, orphan.kind) for orphan in orphans] == [("0", "unlabelled"), ("y0", "no_features")]
    assert held.counts()["overflow"] == 2
    assert run(held, tell("0", 4.0, True))[0].kind == "late"


def test_waiting_features_are_bounded_by_their_bytes():
    held = spec(max_pending_bytes=10_000).open("k", None)
    text = {"t": "x" * 4_000}
    outputs = run(held, *[ask(str(i), float(i), text) for i in range(4)])
    assert [output.id for output in outputs if isinstance(output, Orphan)] == ["0", "1"]
    assert len(held.dumps()) < 10_000


def test_a_key_of_which_only_marks_are_known_has_no_deadline():
    held = spec(idle_ttl=5.0).open("k", None)
    assert run(held, ask("1", math.inf, seq=0))[0].stage == "validate"
    assert held.wake_at() is None
    held = spec(idle_ttl=5.0).open("k", held.dumps())
    assert run(held, ask("1", 7, seq=0)) == []  # the number was handled
    assert [output.time for output in run(held, ask("1", 7, seq=1))] == [7.0]
    assert held.wake_at() == 12.001


def test_a_query_answers_and_leaves_nothing():
    held = spec(idle_ttl=5.0).open("k", None)
    (said,) = run(held, Event("k", "q", 1.0, x=A, op="query"))
    assert isinstance(said, Prediction)
    assert held.dumps() is None
    assert held.wake_at() is None
    run(held, ask("1", 2.0))
    assert run(held, Event("k", "1", 2.0, x={"a": 3.0}, op="query"))[0].id == "1"  # opens nothing, clashes with nothing


def test_a_key_to_which_only_refused_events_came_leaves_no_state():
    held = spec().open("k", None)
    assert run(held, tell("1", 0.0, "maybe"))[0].tag == "rejected"
    assert held.dumps() is None
    assert held.drain_counts() == {"rejected": 1}


@pytest.mark.parametrize("event, fault", [
    (Event("k", None, 0.0, x=A), "id is required"),
    (Event("k", "1", 0.0), "needs x or y"),
    (Event("k", "1", math.nan, x=A), "time"),
    (Event("k", "1", "noon", x=A), "time"),
    (Event("k", "1", 1e308, x=A), "time must be a finite number of seconds, at most 9e+12"),
    (Event("k", "1", -1e13, x=A), "time"),
    (Event("k", "1", 10**5000, x=A), "time"),
    (Event("k", "1", 0.0, x=A, y=True, w=10**400), "w must be"),
    (Event("k", 1, 0.0, x=A), "text"),
    (Event("k", "1", 0.0, x=A, y=True, w=-1.0), "w must be"),
    (Event("k", "1", 0.0, x=A, op="drop"), "op must be one of"),
    (Event("k", "1", 0.0, op="query"), "a query needs x"),
    (Event("k", "1", 0.0, op="forget", target=1.5), "target"),
    (Event("k", "1", 0.0, x={"a": [object()]}), ""),
])
def test_an_event_built_wrong_is_rejected_before_it_reaches_the_clock(event, fault):
    held = spec().open("k", None)
    (rejected,) = run(held, event)
    assert rejected.stage in ("validate", "predict")
    assert fault in rejected.reason
    assert held.dumps() is None


def test_a_state_error_and_a_lack_of_memory_fail_the_bundle_instead_of_the_event(monkeypatch):
    held = spec().open("k", None)
    run(held, ask("1", 0.0))
    for error in (StateError("damaged"), MemoryError()):
        monkeypatch.setattr(PAClassifier, "learn_one", lambda *args, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(type(error)):
            held.on_event(tell("1", 1.0, True))


def test_too_many_rejected_events_of_a_key_fail_the_bundle():
    held = spec(max_rejected=1).open("k", None)
    run(held, tell("1", 0.0, "no"))
    held = spec(max_rejected=1).open("k", held.dumps())
    with pytest.raises(RuntimeError, match="more than 1"):
        held.on_event(tell("1", 0.0, "no"))


def test_numbers_of_a_source_are_handled_once_and_too_old_ones_counted():
    held = spec().open("k", None)
    run(held, *[ask(str(i), float(i), source="topic-0", seq=10 * i) for i in range(1, 1100)])
    before = held.version(), len(held._cells["k"].pending)
    held = spec().open("k", held.dumps())
    assert run(held, ask("again", 2000.0, source="topic-0", seq=10_000)) == []
    assert run(held, ask("older", 2000.0, source="topic-0", seq=100)) == []
    assert [o.tag for o in run(held, ask("other", 2000.0, source="topic-1", seq=100))] == ["predictions"]
    assert [o.tag for o in run(held, ask("gap", 2000.0, source="topic-0", seq=9_999))] == ["predictions"]
    assert held.counts() == {"duplicates": 1, "too_old": 1}
    assert (held.version(), len(held._cells["k"].pending)) == (before[0], before[1] + 2)


@pytest.mark.parametrize("order", ["arrival", "sequence", "event_time"])
def test_a_number_that_no_state_could_hold_costs_its_event_and_not_its_key(order):
    held = spec(order=order).open("k", None)
    (refused,) = run(held, ask("1", 1.0, source="s", seq=2**63))
    assert refused.stage == "validate" and "seq must be" in refused.reason
    run(held, ask("2", 1.0, source="s", seq=0))
    assert spec(order=order).open("k", held.dumps()).on_end()[0].id == "2"


def test_in_sequence_an_event_waits_for_its_predecessor_and_a_doubled_one_is_counted():
    held = spec(order="sequence", label_ttl=5.0).open("k", None)
    assert run(held, tell("1", 50.0, True, seq=1)) == []
    assert held.on_due(49.0) == []
    held = spec(order="sequence", label_ttl=5.0).open("k", held.dumps())
    outputs = run(held, tell("1", 50.0, True, seq=1), ask("1", 46.0, seq=0), ask("1", 46.0, seq=0))
    assert [output.tag for output in outputs] == ["predictions", "outcomes"]
    assert held.counts() == {"duplicates": 2}
    assert run(held, ask("2", 60.0))[0].reason.startswith("seq must be")


def test_at_the_end_of_the_input_gaps_in_a_sequence_are_counted_and_what_waits_is_flushed():
    held = spec(order="sequence").open("k", None)
    run(held, ask("5", 5.0, seq=5), ask("3", 3.0, seq=3))
    outputs = held.on_end()
    assert [(o.tag, getattr(o, "id", None)) for o in outputs] == [
        ("predictions", "3"), ("predictions", "5"), ("orphans", "3"), ("orphans", "5"), ("snapshots", None),
    ]
    assert outputs[2].time == outputs[3].time == 5.0
    assert held.drain_counts()["gaps"] == 4
    assert held.dumps() is None


def test_an_order_buffer_that_is_full_goes_on_without_the_missing_event():
    held = spec(order="sequence", max_pending=2).open("k", None)
    outputs = run(held, *[ask(str(i), float(i), seq=i) for i in (1, 2, 3, 5)])
    assert [output.id for output in outputs] == ["1", "2", "3", "1"]  # and features 1 overflow the pending ones
    assert held.counts()["gaps"] == 1
    assert held.counts()["overflow"] == 2


def test_a_timer_is_asked_for_once_in_whole_milliseconds_after_the_deadline():
    held = spec(label_ttl=1.0).open("k", None)
    run(held, ask("1", 0.0004))
    assert held.wake_at() == pytest.approx(1.002, abs=1e-12)
    run(held, ask("2", 0.5))
    assert held.wake_at() is None  # the earlier one is armed
    run(held, ask("0", 0.0))
    assert held.wake_at() == pytest.approx(1.001, abs=1e-12)
    held = spec(label_ttl=1.0).open("k", held.dumps())
    assert held.wake_at() is None
    assert [orphan.id for orphan in held.on_due(1.002)] == ["0", "1"]
    assert held.wake_at() == pytest.approx(1.501, abs=1e-12)
    assert held.on_due(1.2) == []  # stale
    assert [orphan.id for orphan in held.on_due(1.501)] == ["2"]
    assert held.wake_at() is None


def test_what_no_event_touches_keeps_its_bytes_and_waiting_entries_stay_encoded():
    held = spec().open("k", None)
    run(held, *[ask(str(i), float(i)) for i in range(3)])
    data = held.dumps()
    held = spec().open("k", data)
    assert held.dumps() is not None
    assert held.dumps() == data
    run(held, tell("1", 5.0, True))
    pending = held._cells["k"].pending
    assert (pending.ids(), pending._new) == (["0", "2"], {})  # rows of the stored columns, not examples


def test_an_event_of_another_key_is_a_defect_of_the_engine_and_not_of_the_event():
    with pytest.raises(ValueError, match="reached the state of key 'k'"):
        spec().open("k", None).on_event(Event("other", "1", 0.0, x=A))


@pytest.mark.parametrize("settings, words", [
    ({"lateness": 1.0}, "event_time"), ({"shards": 0}, "integer >= 1"),
    ({"detector": object()}, "drift"), ({"action": "reset"}, "drift"), ({"action": "panic"}, "one of none, reset"),
    ({"label_ttl": 0}, "finite number of seconds > 0"), ({"idle_ttl": math.inf}, "idle_ttl"),
    ({"order": "random"}, "arrival, sequence"), ({"dedupe_size": 0}, "integer >= 1"),
    ({"max_pending": True}, "integer"), ({"on_return": "restore"}, "needs a snapshot reader"),
    ({"at_end": "keep"}, "flush, snapshot"),
])
def test_a_setting_that_cannot_work_is_refused_in_words_when_the_job_is_built(settings, words):
    with pytest.raises(ValueError, match=words):
        spec(**settings)


@pytest.mark.parametrize("model", [
    None, "PAClassifier", PAClassifier, PA1(), preprocessing.StandardScaler(),
    preprocessing.StandardScaler() | preprocessing.MinMaxScaler(),
], ids=lambda model: type(model).__name__)
def test_what_is_no_model_is_refused_when_the_job_is_built(model):
    with pytest.raises(ValueError, match="no model that predicts or scores"):
        CellSpec(model)


def test_a_model_that_cannot_be_stored_is_refused_by_name():
    class Unknown(PAClassifier):
        pass

    with pytest.raises(ValueError, match="Unknown"):
        CellSpec(Unknown())


def test_outcomes_name_the_version_that_said_the_prediction():
    held = spec().open("k", None)
    outputs = run(held, ask("1", 0.0), Event("k", "2", 1.0, A, True), tell("1", 2.0, True))
    assert [output.version for output in outputs if isinstance(output, Outcome)] == [0, 0]
    assert held.version() == 2
