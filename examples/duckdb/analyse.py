#!/usr/bin/env python3
"""Computes the results of delay tasks from archived observations with DuckDB, and compares them with the collector's.

Usage: analyse.py ARCHIVE [--step 1|3600] [--rows N] [--compare RESULTS]
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "observations"))

import capture_losses  # noqa: E402
import comparison  # noqa: E402

PER_HOUR = """
WITH delays AS (
    SELECT v.task, v.task_number, v.name, r.begin_ns // 3600000000000 AS hour, v.value
    FROM value v JOIN result r
        ON r.task = v.task AND r.task_number = v.task_number AND r.begin_ns = v.nth_window * window_length()
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY task, task_number, name, hour ORDER BY value) AS r,
        count(*) OVER (PARTITION BY task, task_number, name, hour) AS n
    FROM delays
), spreads AS (
    SELECT task, task_number, name, hour, max(n) AS n, min(value) AS low, sum(value) AS total, max(value) AS high,
        max(value) FILTER (r = rank_of(0.5, n)) AS v50, max(value) FILTER (r = rank_of(0.9, n)) AS v90,
        max(value) FILTER (r = rank_of(0.99, n)) AS v99, max(value) FILTER (r = rank_of(0.999, n)) AS v999
    FROM ranked GROUP BY task, task_number, name, hour
), packed AS (
    -- The histograms of minutes and hours have wider buckets than those of seconds.
    SELECT task, task_number, name, hour, struct_pack(n := n, min := low, total := total,
        p50 := greatest(low, least(high, middle(v50, 6))), p90 := greatest(low, least(high, middle(v90, 6))),
        p99 := greatest(low, least(high, middle(v99, 6))), p999 := greatest(low, least(high, middle(v999, 6))),
        max := high) AS spread
    FROM spreads
)
SELECT r.task, r.task_number, r.hour * 3600000000000, sent, received, matched, lost, duplicated, reordered,
    unexpected, given_up_sent, given_up_received, identical,
    CASE WHEN not_synchronised IS NULL THEN error END, not_synchronised, contradicts,
    CASE WHEN not_synchronised IS NULL THEN d.spread END, v.spread
FROM (
    SELECT task, task_number, begin_ns // 3600000000000 AS hour, sum(sent)::BIGINT AS sent,
        sum(received)::BIGINT AS received, sum(matched)::BIGINT AS matched, sum(lost)::BIGINT AS lost,
        sum(duplicated)::BIGINT AS duplicated, sum(reordered)::BIGINT AS reordered,
        sum(unexpected)::BIGINT AS unexpected, sum(given_up_sent)::BIGINT AS given_up_sent,
        sum(given_up_received)::BIGINT AS given_up_received, sum(identical)::BIGINT AS identical,
        max(error_ns) AS error, max(not_synchronised) AS not_synchronised, max(contradicts_the_clocks) AS contradicts
    FROM result GROUP BY ALL
) r
LEFT JOIN packed d ON d.task = r.task AND d.task_number = r.task_number AND d.hour = r.hour AND d.name = 'delay'
LEFT JOIN packed v ON v.task = r.task AND v.task_number = r.task_number AND v.hour = r.hour AND v.name = 'variation'
"""


def assign_capture_losses(database):
    """Fills the table `undetermined`."""
    losses, packets = defaultdict(list), defaultdict(list)
    query = """SELECT task, task_number, point, from_ns, until_ns, packets, delivered FROM loss
               ORDER BY task, task_number, point, epoch, stored, from_ns, position"""
    for task, number, point, *loss in database.execute(query).fetchall():
        losses[task, number, point].append(loss)
    query = """SELECT task, task_number, point, seq, place, latest, following FROM unmatched u
               SEMI JOIN loss l ON l.task = u.task AND l.task_number = u.task_number AND l.point <> u.point
               ORDER BY task, task_number, point, seq"""
    for task, number, point, *packet in database.execute(query).fetchall():
        packets[task, number, point].append(packet)
    found = []
    for (task, number, point), of_point in packets.items():
        # A packet at A may be missed at B, and passes there up to the timeout later.
        spans = (capture_losses.SKEW, capture_losses.TIMEOUT)
        other, (before, after) = ("b", spans) if point == "a" else ("a", spans[::-1])
        those = capture_losses.undetermined(losses[task, number, other], of_point, before, after)
        found.extend((task, number, point, seq) for seq in those)
    if found:
        database.executemany("INSERT INTO undetermined VALUES (?, ?, ?, ?)", found)


def results(database, archive, step):
    """Results as rows with the names of the collector."""
    for table in ("observations", "batches"):
        pattern = str(Path(archive) / table / "task=*/date=*/hour=*/point=*/*.parquet")
        database.execute(f"SET VARIABLE {table} = ?", [pattern])
    first, second = (HERE / "observations.sql").read_text().split("-- part 2\n")
    database.execute(first)
    assign_capture_losses(database)
    database.execute(second)
    query = PER_HOUR if step == 3600 else "FROM result"
    names = [*comparison.KEYS, *comparison.COUNTS, "error_ns", "not_synchronised", "contradicts_the_clocks"]
    rows = []
    for *values, delay, variation in database.execute(query).fetchall():
        delay, variation = (tuple(it.values()) if it else None for it in (delay, variation))
        rows.append(comparison.flat(dict(zip(names, values)), delay, variation))
    return sorted(rows, key=lambda row: [row[key] for key in comparison.KEYS])


def stored(database, path):
    """Results of the collector, from an archive or from JSON."""
    if Path(path).is_file() or list(Path(path).glob("*.json")):
        yield from comparison.from_json(path)
        return
    columns = ", ".join(comparison.COLUMNS[2:])
    query = f"""SELECT task, regexp_extract(filename, '([0-9]+)[.]parquet$', 1)::BIGINT, {columns}
                FROM read_parquet(?, hive_partitioning = true, hive_types_autocast = false, filename = true)"""
    pattern = str(Path(path) / "task=*/hour=*/*.parquet")
    for row in database.execute(query, [pattern]).fetchall():
        yield dict(zip(comparison.COLUMNS, row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archive", help="archive of the collector, with observations")
    parser.add_argument("--step", type=int, choices=[1, 3600], default=1, help="seconds of a result")
    parser.add_argument("--rows", type=int, default=20, help="results to print")
    parser.add_argument("--compare", metavar="RESULTS",
                        help="archive with results, or JSON of the API: print each difference, exit with 1 if there is one")
    arguments = parser.parse_args()
    database = duckdb.connect()
    computed = results(database, arguments.archive, arguments.step)
    if not arguments.compare:
        comparison.show(computed, arguments.rows)
        return
    if comparison.compare(computed, stored(database, arguments.compare)):
        sys.exit(1)


if __name__ == "__main__":
    main()
