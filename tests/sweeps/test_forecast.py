"""The time left, from what workers report."""

from jaxbandit.sweeps.forecast import Forecast


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def test_compilations_to_come_are_counted():
    clock = Clock()
    forecast = Forecast({"a": 100, "b": 300, "c": 100}, clock=clock)
    forecast.begins("a")
    clock.now = 10.0
    assert forecast.ends("a") == 10.0
    assert forecast.left() is None  # no rate yet
    forecast.plays("a", 50, seconds=5.0)
    # 50 of a, 400 of the others at 0.1 s, and two compilations of 10 s
    assert forecast.left() == 5.0 + 40.0 + 20.0
    forecast.begins("b")
    clock.now = 14.0
    assert forecast.left() == 5.0 + 40.0 + 6.0 + 10.0
    assert forecast.waiting() == 1


def test_two_workers_share_the_work():
    forecast = Forecast({"a": 100}, workers=2, clock=Clock())
    forecast.plays("a", 20, seconds=2.0)  # without a compilation: the program was there
    assert forecast.waiting() == 0
    assert forecast.left() == 8.0 / 2


def test_what_a_checkpoint_has_is_not_left():
    forecast = Forecast({"a": 100}, clock=Clock())
    forecast.skips("a", 60)
    forecast.plays("a", 20, seconds=2.0)
    assert forecast.left() == 2.0


def test_a_second_program_of_a_group_does_not_change_what_one_takes():
    clock = Clock()
    forecast = Forecast({"a": 10, "b": 10}, clock=clock)
    for seconds in (8.0, 1.0):
        forecast.begins("a")
        clock.now += seconds
        assert forecast.ends("a") == seconds
    forecast.plays("a", 10, seconds=1.0)
    assert forecast.left() == 8.0 + 1.0
