#!/usr/bin/env python3
"""Computes the results of delay tasks from archived observations with Spark, and compares them with the collector's.

Usage: analyse.py ARCHIVE [--rows N] [--compare RESULTS]
"""

import argparse
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "observations"))

import capture_losses  # noqa: E402
import comparison  # noqa: E402

TIMEOUT, SKEW = capture_losses.TIMEOUT, capture_losses.SKEW
LENGTH = 1_000_000_000
PATH = ["task", "task_number"]


def window_of(expression):
    """Number of the window of a time, given as an expression in SQL."""
    return f.expr(f"({expression}) div {LENGTH}")


def point(frame, letter):
    return frame.where(f.col("point") == letter).drop("point")


def read(spark, archive):
    """Batches, capture losses and observations, in the order in which the collector stored them."""
    tables = [spark.read.option("basePath", str(Path(archive) / table)).parquet(str(Path(archive) / table))
              for table in ("batches", "observations")]
    rows, packets = [it.withColumn("task", f.col("task").cast("string")) for it in tables]
    # A batch that two collectors stored, because the task moved, counts once.
    batch = [*PATH, "point", "spool", "batch"]
    first = f.row_number().over(Window.partitionBy(*batch).orderBy("epoch", "stored"))
    batches = rows.where("kind <> 'missed'").withColumn("copy", first).where("copy = 1").drop("copy")
    stored = Window.partitionBy(*PATH, "point").orderBy("epoch", "stored")
    earlier = stored.rowsBetween(Window.unboundedPreceding, -1)
    # The point is complete until here before the batch, and after it.
    batches = batches.withColumn("complete_before", f.max("until_ns").over(earlier))
    batches = batches.withColumn("complete", f.greatest("until_ns", "complete_before")).cache()
    known = [*PATH, "point", "epoch", "spool", "stored"]
    of_batch = batches.select(*known, "complete_before")
    losses = rows.where("kind = 'missed' AND packets > 0").join(of_batch, known)
    # Observations with their number and place: the place never decreases, even where neighbouring stamps do.
    passing = Window.partitionBy(*PATH, "point").orderBy("epoch", "stored", "position")
    seen = packets.join(of_batch, known)
    seen = seen.withColumn("seq", f.row_number().over(passing).cast("long"))
    seen = seen.withColumn("place", f.greatest(f.max("time_ns").over(passing), "complete_before"))
    seen = seen.withColumn("flow", f.concat_ws(" ", "src", "sport", "dst", "dport", "protocol"))
    return batches, losses, seen.cache()


# The matches of an identity. Packets at A and B in their order, as structures of `place` and `seq`. In the order at B,
# each packet is matched to the first unmatched packet at A that is neither too early nor too late. `used`: packets at A
# that are matched or passed over. `last`: the last matched one.
MATCH = f"""
aggregate(b,
    struct(0 AS used, 0 AS last,
        cast(array() AS array<struct<b:bigint, a:bigint, duplicate:bigint>>) AS outcomes),
    (state, it) -> aggregate(array(struct(
            greatest(state.used, size(filter(a, x -> x.place < it.place - {TIMEOUT}))) AS next,
            size(filter(a, x -> x.place < it.place - {TIMEOUT})) AS early,
            size(filter(a, x -> x.place <= it.place + {SKEW})) AS end)),
        state,
        (old, at) -> struct(
            at.next + if(at.next < at.end, 1, 0) AS used,
            if(at.next < at.end, at.next + 1, old.last) AS last,
            concat(old.outcomes, array(struct(
                it.seq AS b,
                if(at.next < at.end, get(a, at.next).seq, NULL) AS a,
                if(at.next >= at.end AND old.last > at.early, get(a, old.last - 1).seq, NULL) AS duplicate)))
            AS outcomes)),
    state -> state.outcomes)
"""


def matched(seen):
    """Outcomes at B: the number of the matched packet at A, or of the one that it duplicates."""
    key = [*PATH, "identity"]
    def packets(letter):
        ordered = f.array_sort(f.collect_list(f.struct("seq", "place")))
        return point(seen, letter).groupBy(*key).agg(ordered.alias(letter))
    none = f.expr("cast(array() AS array<struct<seq:bigint, place:bigint>>)")
    both = packets("b").join(packets("a"), key, "left").withColumn("a", f.coalesce("a", none))
    return both.select(*PATH, f.explode(f.expr(MATCH)).alias("it")).select(
        *PATH, f.col("it.b").alias("b_seq"), f.col("it.a").alias("a_seq"), f.col("it.duplicate").alias("of_seq")).cache()


def outcomes(seen):
    """Outcome of each packet at A, and at B."""
    hits = matched(seen)
    a, b = point(seen, "a"), point(seen, "b")
    received = b.select(*PATH, f.col("seq").alias("b_seq"), f.col("place").alias("b_place"),
                        f.col("time_ns").alias("b_time"), f.col("error_ns").alias("b_error"))
    pairs = received.join(hits.where("a_seq IS NOT NULL"), [*PATH, "b_seq"]).drop("of_seq")
    at_a = a.join(pairs.withColumnRenamed("a_seq", "seq"), [*PATH, "seq"], "left")
    at_a = at_a.withColumn("delay", f.col("b_time") - f.col("time_ns"))
    at_a = at_a.withColumn("error", f.col("error_ns") + f.col("b_error"))
    order = Window.partitionBy(*PATH).orderBy("seq")
    in_flow = Window.partitionBy(*PATH, "flow").orderBy("seq")
    of_identity = Window.partitionBy(*PATH, "identity").orderBy("seq")
    at_a = at_a.withColumn("latest", f.max("b_place").over(order))
    for name, column in (("previous_b_seq", "b_seq"), ("previous_delay", "delay"), ("previous_time", "time_ns")):
        at_a = at_a.withColumn(name, f.lag(column).over(in_flow))
    twin = f.lag("place").over(of_identity)
    at_a = at_a.withColumn("is_identical", f.coalesce(twin + TIMEOUT >= f.col("place"), f.lit(False)).cast("int"))
    # A matched packet is reordered if a later one of its flow arrived before it.
    arrived = Window.partitionBy(*PATH, "flow").orderBy("b_seq").rowsBetween(Window.unboundedPreceding, -1)
    reordered = at_a.where("b_seq IS NOT NULL").withColumn("overtaken_by", f.max("seq").over(arrived))
    reordered = reordered.where("overtaken_by > seq").select(*PATH, "seq", f.lit(1).alias("reordered"))
    at_a = at_a.join(reordered, [*PATH, "seq"], "left").fillna(0, ["reordered"])
    sent = a.select(*PATH, f.col("seq").alias("a_seq"), f.col("place").alias("a_place"))
    original = a.select(*PATH, f.col("seq").alias("of_seq"), f.col("time_ns").alias("of_time"))
    at_b = b.join(hits.withColumnRenamed("b_seq", "seq"), [*PATH, "seq"])
    at_b = at_b.join(sent, [*PATH, "a_seq"], "left").join(original, [*PATH, "of_seq"], "left")
    at_b = at_b.withColumn("latest", f.max("a_place").over(order))
    return at_a.cache(), at_b.cache()


def unmatched(at_a, at_b):
    """Packets without a match, with the latest place at the other point before them, and the next later place."""
    def of(frame, letter, condition):
        highs = frame.where("latest IS NOT NULL").select(*PATH, f.col("latest").alias("high")).distinct()
        those = frame.where(condition).select(*PATH, "seq", "place", "time_ns", "latest")
        those = those.withColumn("key", f.coalesce("latest", "place"))
        # The next high is the first one behind the key: both in one order, the packets behind equal highs.
        marks = highs.select(*PATH, f.col("high").alias("key"), f.lit(0).alias("kind"), "high",
                             *[f.lit(None).cast("long").alias(it) for it in ("seq", "place", "time_ns", "latest")])
        both = marks.unionByName(those.withColumn("kind", f.lit(1)).withColumn("high", f.lit(None).cast("long")))
        # Backwards, because Spark computes a frame that shrinks from row to row in quadratic time.
        backwards = Window.partitionBy(*PATH).orderBy(f.desc("key"), f.desc("kind"))
        behind = backwards.rowsBetween(Window.unboundedPreceding, -1)
        both = both.withColumn("following", f.min("high").over(behind)).where("kind = 1")
        return both.select(*PATH, f.lit(letter).alias("point"), "seq", "place", "time_ns", "latest", "following")
    return of(at_a, "a", "b_seq IS NULL").unionByName(of(at_b, "b", "a_seq IS NULL AND of_seq IS NULL")).cache()


def assigned(key, losses, packets):
    """Packets that the capture of the other point may have missed."""
    letter = key[-1]
    spans = (SKEW, TIMEOUT) if letter == "a" else (TIMEOUT, SKEW)
    losses = [it[-4:] for it in sorted(losses)]
    return [(*key, seq) for seq in capture_losses.undetermined(losses, sorted(packets), *spans)]


def undetermined(spark, batches, losses, seen, alone):
    """Packets without a match of which it is not known what happened to them."""
    # The order of the reports, and the place up to which the point had delivered before.
    stored = [*PATH, "point", "stored"]
    within = seen.select(*stored, f.col("position").alias("at"), "time_ns")
    keys = [*stored, "epoch", "position", "from_ns", "until_ns", "packets", "complete_before"]
    behind = losses.select(*keys).join(within, stored, "left").groupBy(*keys).agg(
        f.min(f.when(f.col("time_ns") >= f.col("from_ns"), f.col("at"))).alias("first_behind"))
    endless = f.coalesce("first_behind", f.lit(2**62))
    delivered = behind.join(within, stored, "left").groupBy(*keys).agg(
        f.max(f.when(f.col("at") < endless, f.col("time_ns"))).alias("last"))
    delivered = delivered.withColumn("delivered", f.greatest("complete_before", "last"))
    other = f.when(f.col("point") == "a", "b").otherwise("a")
    reports = delivered.withColumn("point", other).rdd.map(lambda it: (
        (it.task, it.task_number, it.point),
        (it.epoch, it.stored, it.from_ns, it.position, it.from_ns, it.until_ns, it.packets, it.delivered)))
    packets = alone.join(losses.withColumn("point", other).select(*PATH, "point").distinct(), [*PATH, "point"])
    packets = packets.rdd.map(lambda it: (
        (it.task, it.task_number, it.point), (it.seq, it.place, it.latest, it.following)))
    # One packet after the other, of each path: the assignment depends on their order.
    those = packets.cogroup(reports).flatMap(lambda it: assigned(it[0], list(it[1][1]), list(it[1][0])))
    schema = "task string, task_number long, point string, seq long"
    missed = spark.createDataFrame(those, schema)
    # Packets that passed while the other point was not observed.
    begin = f.coalesce("complete_before", f.lit(-(2**63)))
    gaps = batches.withColumn("gap", begin).where("observed_from_ns > gap").withColumn("point", other)
    gaps = gaps.select(*PATH, "point", "gap", f.col("observed_from_ns").alias("gap_until"))
    first = f.when(f.col("point") == "a", SKEW).otherwise(TIMEOUT)
    last = f.when(f.col("point") == "a", TIMEOUT).otherwise(SKEW)
    unseen = alone.join(gaps, [*PATH, "point"]).where(
        (f.col("time_ns") + last >= f.col("gap")) & (f.col("time_ns") - first < f.col("gap_until")))
    both = missed.unionByName(unseen.select(*PATH, "point", "seq")).distinct()
    return both.withColumn("undetermined", f.lit(1)).cache()


def counted(at_a, at_b, those):
    """Counts by window. A packet belongs to the window in which it passed A; if only B observed it, that at B."""
    a = at_a.join(point(those, "a"), [*PATH, "seq"], "left").fillna(0, ["undetermined"])
    b = at_b.where("a_seq IS NULL").join(point(those, "b"), [*PATH, "seq"], "left").fillna(0, ["undetermined"])
    def row(frame, time, **counts):
        counts = {name: counts.get(name, "0") for name in [*comparison.COUNTS, "error", "most_delay"]}
        return frame.select(*PATH, window_of(time).alias("nth_window"), *[f.expr(it).cast("long").alias(name)
                                                                          for name, it in counts.items()])
    none = {"error": "NULL", "most_delay": "NULL"}
    rows = row(a, "time_ns", sent="1", received="int(b_seq IS NOT NULL)", matched="int(b_seq IS NOT NULL)",
               lost="int(b_seq IS NULL AND undetermined = 0)", reordered="reordered", given_up_sent="undetermined",
               identical="is_identical", error="error", most_delay="delay + error")
    rows = rows.unionByName(row(b.where("of_seq IS NOT NULL"), "of_time", received="1", duplicated="1", **none))
    rows = rows.unionByName(row(b.where("of_seq IS NULL"), "time_ns", received="1", unexpected="1 - undetermined",
                                given_up_received="undetermined", **none))
    sums = [f.sum(name).alias(name) for name in comparison.COUNTS]
    return rows.groupBy(*PATH, "nth_window").agg(
        *sums, f.coalesce(f.max("error"), f.lit(0)).alias("stamp_error"), f.min("most_delay").alias("most_delay"))


def spreads(at_a):
    """Distributions of delays, and of delay variations of consecutive packets of a flow, by window."""
    delays = at_a.where("delay IS NOT NULL").select(
        *PATH, f.lit("delay").alias("name"), window_of("time_ns").alias("nth_window"), f.col("delay").alias("value"))
    # A variation is in the window of the packet that was matched later.
    variations = at_a.where("delay IS NOT NULL AND previous_delay IS NOT NULL").select(
        *PATH, f.lit("variation").alias("name"),
        window_of("if(b_seq > previous_b_seq, time_ns, previous_time)").alias("nth_window"),
        (f.col("delay") - f.col("previous_delay")).alias("value"))
    key = [*PATH, "name", "nth_window"]
    values = delays.unionByName(variations).groupBy(*key).agg(f.array_sort(f.collect_list("value")).alias("v"))
    values = values.withColumn("n", f.size("v")).withColumn("low", f.expr("v[0]")).withColumn("high", f.expr("v[n - 1]"))
    def percentile(quantile):
        # By the nearest rank. Up to 64 values are exact, those of more come from buckets: 2^10 for each power of two.
        rank = f"int(greatest(1, least(n, ceil(double({quantile}) * n))))"
        shift = "greatest(0, length(bin(abs(x))) - 11)"
        middle = (f"(shiftleft(shiftright(abs(x), {shift}), {shift}) + shiftright(shiftleft(1L, {shift}), 1))"
                  " * int(sign(x))")
        value = f"if(n <= 64 OR {rank} = n, x, greatest(low, least(high, {middle})))"
        return f"transform(array(v[{rank} - 1]), x -> {value})[0]"
    parts = ["bigint(n)", "low", "aggregate(v, 0L, (sum, x) -> sum + x)", *map(percentile, (0.5, 0.9, 0.99, 0.999)), "high"]
    spread = f.expr(f"array({', '.join(f'bigint({it})' for it in parts)})")
    values = values.select(*key, spread.alias("spread"))
    def of(name):
        return values.where(f.col("name") == name).select(*PATH, "nth_window", f.col("spread").alias(name))
    return of("delay"), of("variation")


def clocks(batches, windows):
    """The worst state of the clocks of each point while the packets of a window may have passed both."""
    ends = windows.groupBy(*PATH).agg(f.min("nth_window").alias("first"), f.max("nth_window").alias("last"))
    around = batches.where("kind = 'observed'").join(ends, PATH)
    begin = f.coalesce(window_of(f"complete_before - {LENGTH + TIMEOUT + SKEW}") + 1, f.col("first"))
    around = around.withColumn("from", f.greatest("first", begin))
    around = around.withColumn("to", f.least(f.col("last"), window_of(f"complete + {SKEW - 1}")))
    around = around.where("from <= to").withColumn("nth_window", f.explode(f.sequence("from", "to")))
    machine = f.when(f.min("clock_machine") == f.max("clock_machine"), f.min("clock_machine"))
    known = f.count("clock_error_ns") == f.count(f.lit(1))
    state = around.groupBy(*PATH, "nth_window", "point").agg(
        machine.alias("machine"), f.when(known, f.max("clock_error_ns")).alias("clock"))
    a, b = (point(state, letter).withColumnsRenamed({"machine": f"{letter}_machine", "clock": f"{letter}_clock"})
            .withColumn(f"is_{letter}", f.lit(True)) for letter in "ab")
    key = [*PATH, "nth_window"]
    both = windows.select(*key).join(a, key, "left").join(b, key, "left")
    both = both.withColumn("not_synchronised", f.expr("""
        CASE WHEN is_a IS NULL OR is_b IS NULL THEN 'unknown' WHEN a_machine = b_machine THEN NULL
            WHEN a_clock IS NULL THEN 'first' WHEN b_clock IS NULL THEN 'second' END"""))
    both = both.withColumn("offset", f.expr(
        "CASE WHEN a_machine = b_machine THEN 0 ELSE a_clock + b_clock END"))
    return both.select(*key, "not_synchronised", "offset")


def results(spark, archive):
    """Results of each second."""
    batches, losses, seen = read(spark, archive)
    at_a, at_b = outcomes(seen)
    those = undetermined(spark, batches, losses, seen, unmatched(at_a, at_b))
    windows = counted(at_a, at_b, those).cache()
    delay, variation = spreads(at_a)
    key = [*PATH, "nth_window"]
    # Up to here, both points are complete.
    ends = batches.groupBy(*PATH, "point").agg(f.max("complete").alias("complete"))
    ends = ends.groupBy(*PATH).agg((f.min("complete") - TIMEOUT - SKEW).alias("until"))
    all_of = windows.join(clocks(batches, windows), key).join(ends, PATH)
    all_of = all_of.where(f"(nth_window + 1) * {LENGTH} <= until")
    all_of = all_of.join(delay, key, "left").join(variation, key, "left")
    return all_of.selectExpr(
        *PATH, f"nth_window * {LENGTH} AS begin_ns", *comparison.COUNTS,
        "if(not_synchronised IS NULL, stamp_error + offset, NULL) AS error_ns", "not_synchronised",
        "int(not_synchronised IS NULL AND coalesce(most_delay + offset < 0, false)) AS contradicts_the_clocks",
        "if(not_synchronised IS NULL, delay, NULL) AS delay", "variation")


def rows(frame):
    for row in frame.toLocalIterator(prefetchPartitions=True):
        row = row.asDict()
        delay, variation = row.pop("delay"), row.pop("variation")
        yield comparison.flat(row, delay, variation)


def stored(spark, path):
    """Results of the collector, from an archive or from JSON."""
    if Path(path).is_file() or list(Path(path).glob("*.json")):
        yield from comparison.from_json(path)
        return
    frame = spark.read.option("basePath", str(path)).parquet(str(Path(path) / "task=*" / "hour=*"))
    number = f.regexp_extract(f.input_file_name(), r"([0-9]+)[.]parquet$", 1).cast("long")
    frame = frame.withColumn("task_number", number).withColumn("task", f.col("task").cast("string"))
    for row in frame.select(*comparison.COLUMNS).toLocalIterator(prefetchPartitions=True):
        yield row.asDict()


def session():
    """A session in local mode, which listens on the loopback interface only."""
    settings = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.shuffle.partitions": "8", "spark.driver.memory": "4g",
                # Times are read as integers.
                "spark.sql.legacy.parquet.nanosAsLong": "true"}
    builder = SparkSession.builder.master("local[*]").appName("wirestamp")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(capture_losses.__file__)
    return spark


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archive", help="archive of the collector, with observations")
    parser.add_argument("--rows", type=int, default=20, help="results to print")
    parser.add_argument("--compare", metavar="RESULTS",
                        help="archive with results, or JSON of the API: print each difference, exit with 1 if there is one")
    arguments = parser.parse_args()
    spark = session()
    try:
        computed = rows(results(spark, arguments.archive))
        if arguments.compare:
            sys.exit(1 if comparison.compare(computed, stored(spark, arguments.compare)) else 0)
        computed = sorted(computed, key=lambda row: [row[key] for key in comparison.KEYS])
        comparison.show(computed, arguments.rows)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
