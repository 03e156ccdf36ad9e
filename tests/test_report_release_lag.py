"""The release-lag model on the public dates."""

from __future__ import annotations

from datetime import date

import pytest

from harness.errors import UserError
from reports.release_lag import LAG_FILE, Major, WhatIf, build_release_lag, lag_of, load_lag, what_if

STRATEGIES = ["inline", "external", "decorator"]


def test_plain_users_would_have_waited_as_the_record_says():
    """Had datafusion-python waited for the engine only, the delays would have been 0, 0, 7, 0, 0 days."""
    rows = [lag_of(major, "inline") for major in load_lag().major]
    assert [row.version for row in rows] == [51, 52, 53, 54, 55]
    assert [row.plain_wait for row in rows] == [0, 0, 7, 0, 0]


def test_packages_of_their_own_never_delay_plain_users():
    lag = build_release_lag(load_lag(), STRATEGIES)
    assert all(row.plain_wait == 0 for row in lag.rows if row.strategy != "inline")


def test_own_lag_counts_for_packages_of_their_own_only():
    data = load_lag()
    plain, later = (build_release_lag(data, STRATEGIES, own) for own in (0, 10))
    days = [{row.strategy: row.median_days for row in lag.strategies} for lag in (plain, later)]
    assert days[1]["inline"] == days[0]["inline"]
    assert days[1]["external"] == days[0]["external"] + 10
    assert days[1]["decorator"] == days[0]["decorator"] + 10


def test_ballistas_lag_is_the_records():
    assert build_release_lag(load_lag(), STRATEGIES).own_lag_observed == [6, 11, 40, 17]


def test_sequence_is_the_longest_chain():
    assert {row.strategy: row.sequence for row in build_release_lag(load_lag(), STRATEGIES).strategies} == {
        "inline": 3,
        "external": 3,
        "decorator": 2,
    }


def test_a_missing_date_is_a_reason_not_a_zero():
    row = lag_of(Major(version=56, datafusion=date(2026, 11, 1)), "inline")
    assert row.days is None
    assert row.reason == "the engine's release date is unknown"


def test_only_the_strategies_of_the_run():
    assert [row.strategy for row in build_release_lag(load_lag(), ["decorator", "mine"]).strategies] == ["decorator"]


@pytest.mark.parametrize(
    ("assumed", "inline", "wait", "decorator"),
    [((3, 30, 0), 30, 0, 30), ((40, 20, 0), 40, 20, 40), ((40, 20, 5), 40, 20, 45)],
)
def test_what_if(assumed, inline, wait, decorator):
    rows = what_if(WhatIf(engine_days=assumed[0], python_days=assumed[1], own_days=assumed[2]), STRATEGIES)
    assert (rows["inline"].days, rows["inline"].plain_wait) == (inline, wait)
    assert (rows["decorator"].days, rows["external"].days) == (decorator, decorator)


def test_every_date_is_after_its_major_and_before_the_reading():
    data = load_lag()
    for major in data.major:
        dates = [value for name, value in major if name != "version" and value is not None]
        assert min(dates) == major.datafusion
        assert max(dates) <= data.read_on


def test_a_damaged_file_is_one_clear_message(tmp_path):
    path = tmp_path / "lag.toml"
    path.write_text(LAG_FILE.read_text(encoding="utf-8").replace("schema = 1", 'schema = "one"'))
    with pytest.raises(UserError, match=r"release dates .*lag\.toml: `schema`"):
        load_lag(path)
