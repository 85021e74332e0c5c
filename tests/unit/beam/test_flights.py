"""The flights reader: what is known when, by hand."""

import datetime
import gzip
import importlib.resources

import pytest

from beam_pipelines.flights import Flights
from pa_river.stream import Event, Rejected

HEADER = "month,day,sched_dep_time,sched_arr_time,carrier,flight,origin,dest,distance,dep_delay,arr_delay,air_time"


def reader(label="late"):
    found = Flights(label)
    found.open(HEADER)
    return found


def test_a_flight_asks_at_schedule_time_and_is_answered_when_it_has_landed():
    asked, answered = reader().events(b"2,3,1830,1,B6,725,JFK,BQN,1576,-10,16,183")
    assert (asked.key, asked.id) == ("B6-JFK", "2-3-B6-725-JFK")
    assert asked.time == datetime.datetime(2013, 2, 3, 18, 30, tzinfo=datetime.UTC).timestamp()
    assert answered == Event("B6-JFK", "2-3-B6-725-JFK", asked.time + 60 * (183 - 10), None, True)
    assert asked.y is None and asked.segment == "evening"
    assert asked.x == {"dest=BQN": 1.0, "hour=18": 1.0, "weekday=Sun": 1.0, "day": 18.5 / 24, "distance": 1.576}


def test_late_is_more_than_fifteen_minutes_and_the_delay_is_in_minutes():
    rows = [b"1,1,515,819,UA,1545,EWR,IAH,1400,2,%d,227" % delay for delay in (15, 16, -3)]
    assert [reader().events(row)[1].y for row in rows] == [False, True, False]
    assert [reader("delay").events(row)[1].y for row in rows] == [15.0, 16.0, -3.0]


@pytest.mark.parametrize("tail", [b",,", b"5,,", b"NA,NA,NA"])
def test_a_flight_whose_landing_is_unknown_is_asked_about_and_never_answered(tail):
    assert len(reader().events(b"1,1,515,819,UA,1545,EWR,IAH,1400," + tail)) == 1


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (b"1,1,515,819,UA,1545,EWR,IAH,1400,2,11", "11 cells under a header of 12"),
        (b"1,1,515,819,UA,1545,EWR,IAH,nan,2,11,227", "distance must be a finite number"),
        (b"1,1,515,819,UA,1545,EWR,IAH,1400,2,late,227", "arr_delay must be a number, got 'late'"),
        (b"1,1,515,819,UA,1545,EWR,IAH,1400,inf,11,227", "dep_delay must be a finite number"),
        (b"1,1,561,819,UA,1545,EWR,IAH,1400,2,11,227", "sched_dep_time must be a time"),
        (b"1,1,2400,819,UA,1545,EWR,IAH,1400,2,11,227", "sched_dep_time must be a time"),
        (b"2,30,515,819,UA,1545,EWR,IAH,1400,2,11,227", "day"),
        (b"x,1,515,819,UA,1545,EWR,IAH,1400,2,11,227", "month and day must be whole numbers"),
        (b"1,1,515,819,,1545,EWR,IAH,1400,2,11,227", "carrier is empty"),
        (b'1,1,515,819,"UA,1545,EWR,IAH,1400,2,11,227', "not a CSV row"),
        (b"\xff,1,515,819,UA,1545,EWR,IAH,1400,2,11,227", "not UTF-8"),
    ],
)
def test_a_row_with_a_wrong_cell_is_one_rejected_record_that_names_it(row, word):
    (rejected,) = reader().events(row)
    assert isinstance(rejected, Rejected)
    assert rejected.stage == "parse" and word in rejected.reason
    assert reader().times(row) == ((None, 1),)
    assert reader().event(row, 0) == rejected


def test_a_file_without_a_needed_column_is_refused_by_name():
    with pytest.raises(ValueError, match="needs the column 'air_time'"):
        Flights("late").open(HEADER.replace(",air_time", ""))


def test_the_two_passes_of_the_sort_see_the_same_events_in_every_row_of_the_sample():
    flights = Flights("late")
    ids, labels = set(), 0
    with gzip.open(importlib.resources.files("beam_pipelines") / "samples" / "flights_2013_01.csv.gz") as file:
        flights.open(next(file).decode().strip())
        for line in file:
            events = flights.events(line.strip())
            assert [(event.time, int(event.x is not None)) for event in events] == list(flights.times(line.strip()))
            assert [flights.event(line.strip(), index) for index in range(len(events))] == list(events)
            assert not any(name.startswith(("dep", "air", "arr")) for name in events[0].x)
            ids.add(events[0].id)
            labels += len(events) - 1
    assert (len(ids), labels) == (27_004, 26_398)
