"""Measured usage and throttle times with Kafka's arithmetic, and a manual clock."""

import pytest

from barnabas.security.quotas.rates import LONGEST_MS, Rate, TokenBucket, Windows, milliseconds

SECOND = 1000


def test_ten_seconds_worth_can_be_used_at_once():
    rate = Rate(Windows())
    rate.record(10_000, 0)
    assert rate.throttle_ms(1000, 0) == 0
    rate.record(1, 0)
    assert rate.throttle_ms(1000, 0) == 1


def test_the_throttle_time_brings_the_rate_down_to_the_quota():
    rate = Rate(Windows())
    rate.record(30_000, 500)
    assert rate.throttle_ms(1000, 500) == 20_000  # (O - T) / T * W of KIP-13, with W = 10 s


@pytest.mark.parametrize("bound", [100.0, 1000.0, 12_345.0])
@pytest.mark.parametrize("size", [1, 50, 5000])
def test_a_client_that_waits_as_told_stays_within_a_tenth_of_its_quota(bound, size):
    rate, now, sent = Rate(Windows()), 0, []
    while now < 120 * SECOND:
        rate.record(size, now)
        sent.append((now, size))
        now += rate.throttle_ms(bound, now) or 1
    for start in range(30, 100, 7):  # after the burst of the first ten seconds
        used = sum(each for at, each in sent if start * SECOND <= at < (start + 10) * SECOND)
        assert used <= 10 * bound * 1.1 + size
    used = sum(each for at, each in sent if at >= 30 * SECOND)
    assert used == pytest.approx(min(90 * bound, 90 * SECOND * size), rel=0.1, abs=size)


def test_what_is_taken_back_does_not_count():
    rate = Rate(Windows())
    rate.record(50_000, 0)
    rate.record(-50_000, 0)
    assert rate.throttle_ms(1000, 0) == 0


def test_old_samples_do_not_count():
    rate = Rate(Windows())
    rate.record(50_000, 0)
    assert rate.throttle_ms(1000, 10_999) > 0
    assert not rate.is_idle(10_999)
    assert rate.throttle_ms(1000, 11_000) == 0
    assert rate.is_idle(11_000)


def test_a_sample_is_used_until_it_is_full():
    rate = Rate(Windows(number=3, length_ms=100))
    for at in (0, 50, 100, 150, 200, 250, 300, 350):
        rate.record(1, at)
    # The samples from 100 on, and that of 0, whose last event is 300 ms ago.
    assert rate.throttle_ms(1, 350) == 6 * SECOND - 250


def test_numbers_that_are_none_limit_nothing():
    rate, bucket = Rate(Windows()), TokenBucket(Windows())
    rate.record(1e9, 0)
    bucket.record(1e9, float("nan"), 0)
    for bound in (float("nan"), float("inf")):
        assert rate.throttle_ms(bound, 0) == 0
        assert bucket.throttle_ms(bound, 0) == 0
    assert bucket.throttle_ms(1.0, 0) == 0


def test_a_window_of_one_sample_is_empty_at_its_beginning():
    rate = Rate(Windows(number=1))
    rate.record(10, 0)
    assert rate.throttle_ms(1, 0) == 0
    assert rate.throttle_ms(1, 500) == 9500


def test_a_bucket_goes_below_zero_once_and_fills_again():
    bucket = TokenBucket(Windows())
    bucket.record(560, 50, 0)
    assert bucket.throttle_ms(50, 0) == 200
    assert bucket.throttle_ms(50, 150) == 50
    assert bucket.throttle_ms(50, 200) == 0
    assert not bucket.is_idle(50, 200)
    assert bucket.is_idle(50, 11_200)


def test_a_bucket_holds_no_more_than_its_burst():
    bucket = TokenBucket(Windows(number=2))
    bucket.record(0, 10, 0)
    bucket.record(21, 10, 60 * SECOND)
    assert bucket.throttle_ms(10, 60 * SECOND) == 100


@pytest.mark.parametrize(
    "value, expected",
    [(0.4, 0), (0.5, 1), (-3, 0), (float("nan"), 0), (float("inf"), LONGEST_MS), (1e300, LONGEST_MS)],
)
def test_throttle_times_are_rounded_as_javas(value, expected):
    assert milliseconds(value) == expected
