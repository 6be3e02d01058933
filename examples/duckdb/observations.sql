-- Results of a collector, computed from archived observations, with the rules of the collector. Times are in
-- nanoseconds. A point: 'a' is the first one of the task. `analyse.py` runs these statements in order; it fills the table
-- `undetermined` between the two parts.

-- Parameters of the collector: timeout and skew of the matching, length of a window.
CREATE MACRO timeout() AS 1000000000::BIGINT;
CREATE MACRO skew() AS 100000000::BIGINT;
CREATE MACRO window_length() AS 1000000000::BIGINT;
CREATE MACRO window_of(t) AS t // window_length();

-- Batches in the order in which they were stored. A batch that two collectors stored, because the task moved, counts once.
CREATE TEMP TABLE batch AS
SELECT task, task_number, point, epoch, spool, stored, kind, until_ns, observed_from_ns, clock_machine, clock_error_ns,
    -- The point is complete until here before the batch.
    max(until_ns) OVER (PARTITION BY task, task_number, point ORDER BY epoch, stored
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS complete_before,
    row_number() OVER (PARTITION BY task, task_number, point ORDER BY epoch, stored) AS place
FROM (
    FROM read_parquet(getvariable('batches'), hive_partitioning = true, hive_types_autocast = false)
    WHERE kind <> 'missed'
    QUALIFY row_number() OVER (PARTITION BY task, task_number, point, spool, batch ORDER BY epoch, stored) = 1
);

-- The end of each batch, as far as the point is complete then.
ALTER TABLE batch ADD COLUMN complete BIGINT;
UPDATE batch SET complete = greatest(until_ns, complete_before);

-- Observations with their number and place: the place never decreases, even where neighbouring stamps do.
CREATE TEMP TABLE seen AS
SELECT o.task, o.task_number, o.point, o.stored, o.position, o.identity, o.time_ns, o.error_ns,
    hash(o.src, o.sport, o.dst, o.dport, o.protocol) AS flow,
    row_number() OVER passing AS seq,
    greatest(max(o.time_ns) OVER passing, b.complete_before) AS place
FROM read_parquet(getvariable('observations'), hive_partitioning = true, hive_types_autocast = false) o
JOIN batch b USING (task, task_number, point, epoch, spool, stored)
WINDOW passing AS (PARTITION BY o.task, o.task_number, o.point ORDER BY o.epoch, o.stored, o.position);

CREATE TEMP TABLE sent AS
SELECT *, row_number() OVER (PARTITION BY task, task_number, identity ORDER BY seq) AS nth,
    lag(place) OVER (PARTITION BY task, task_number, identity ORDER BY seq) AS twin
FROM seen WHERE point = 'a';

-- Of each packet at B: how many packets of its identity at A are too early for it, and how many are not too late.
CREATE TEMP TABLE received AS
SELECT b.task, b.task_number, b.identity, b.seq, b.place, b.time_ns, b.error_ns,
    row_number() OVER (PARTITION BY b.task, b.task_number, b.identity ORDER BY b.seq) AS nth,
    coalesce(early, 0) AS early, coalesce(until_late, 0) AS until_late
FROM seen b
LEFT JOIN (
    SELECT b.task, b.task_number, b.seq, count(*) FILTER (a.place < b.place - timeout()) AS early,
        count(*) FILTER (a.place <= b.place + skew()) AS until_late
    FROM seen b JOIN sent a USING (task, task_number, identity)
    WHERE b.point = 'b' GROUP BY ALL
) USING (task, task_number, seq)
WHERE b.point = 'b';

-- In the order at B, each packet is matched to the first unmatched packet at A that is neither too early nor too late.
-- `used`: packets at A that are matched or passed over; `matched`: the last matched one; `hit`: that of this packet.
CREATE TEMP TABLE outcome_at_b AS
WITH RECURSIVE step AS (
    SELECT task, task_number, identity, 0::BIGINT AS nth, 0::BIGINT AS used, 0::BIGINT AS matched,
        NULL::BIGINT AS hit, NULL::BIGINT AS seq, false AS is_duplicate
    FROM received WHERE nth = 1
    UNION ALL
    SELECT b.task, b.task_number, b.identity, b.nth,
        CASE WHEN greatest(used, early) < until_late THEN greatest(used, early) + 1 ELSE greatest(used, early) END,
        CASE WHEN greatest(used, early) < until_late THEN greatest(used, early) + 1 ELSE matched END,
        CASE WHEN greatest(used, early) < until_late THEN greatest(used, early) + 1 END,
        b.seq,
        greatest(used, early) >= until_late AND matched > early
    FROM step s JOIN received b
        ON b.task = s.task AND b.task_number = s.task_number AND b.identity = s.identity AND b.nth = s.nth + 1
)
SELECT b.*, hit, matched, is_duplicate
FROM step JOIN received b USING (task, task_number, seq);

-- Each packet at A, with its match, and with the previous and next packet of its flow.
CREATE TEMP TABLE outcome_at_a AS
SELECT *,
    lag(b_seq) OVER in_flow AS previous_b_seq, lag(delay) OVER in_flow AS previous_delay,
    lag(time_ns) OVER in_flow AS previous_time,
    -- Latest place at B of the packets up to this one.
    max(b_place) OVER (PARTITION BY task, task_number ORDER BY seq) AS latest
FROM (
    SELECT a.task, a.task_number, a.seq, a.place, a.time_ns, a.flow, b.seq AS b_seq, b.place AS b_place,
        b.time_ns - a.time_ns AS delay, a.error_ns + b.error_ns AS error,
        coalesce(a.twin + timeout() >= a.place, false) AS is_identical
    FROM sent a
    LEFT JOIN outcome_at_b b
        ON b.task = a.task AND b.task_number = a.task_number AND b.identity = a.identity AND b.hit = a.nth
)
WINDOW in_flow AS (PARTITION BY task, task_number, flow ORDER BY seq);

-- Matched packets that came after a later one of their flow.
CREATE TEMP TABLE reordered AS
SELECT task, task_number, seq
FROM outcome_at_a WHERE b_seq IS NOT NULL
QUALIFY max(seq) OVER (PARTITION BY task, task_number, flow ORDER BY b_seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > seq;

-- Packets without a match, at the point where they were observed: candidates for lost (A) and unexpected (B).
CREATE TEMP TABLE unmatched AS
WITH at_b AS (
    SELECT b.*, max(a.place) OVER (PARTITION BY b.task, b.task_number ORDER BY b.seq) AS latest
    FROM outcome_at_b b
    LEFT JOIN sent a
        ON b.task = a.task AND b.task_number = a.task_number AND b.identity = a.identity AND b.hit = a.nth
), alone AS (
    SELECT task, task_number, 'a' AS point, seq, place, time_ns, latest FROM outcome_at_a WHERE b_seq IS NULL
    UNION ALL
    SELECT task, task_number, 'b', seq, place, time_ns, latest FROM at_b WHERE hit IS NULL AND NOT is_duplicate
), highs AS (
    SELECT DISTINCT task, task_number, 'a' AS point, latest AS high FROM outcome_at_a WHERE latest IS NOT NULL
    UNION ALL
    SELECT DISTINCT task, task_number, 'b', latest FROM at_b WHERE latest IS NOT NULL
)
SELECT u.*, h.high AS following
FROM alone u ASOF LEFT JOIN highs h
    ON h.task = u.task AND h.task_number = u.task_number AND h.point = u.point
        AND coalesce(u.latest, u.place) < h.high;

-- Capture losses in the order of their reports, with the place up to which the point had delivered before.
CREATE TEMP TABLE loss AS
WITH missed AS (
    SELECT m.task, m.task_number, m.point, m.epoch, m.stored, m.position, m.from_ns, m.until_ns, m.packets,
        b.complete_before,
        (SELECT min(s.position) FROM seen s WHERE s.task = m.task AND s.task_number = m.task_number
            AND s.point = m.point AND s.stored = m.stored AND s.time_ns >= m.from_ns) AS first_behind
    FROM read_parquet(getvariable('batches'), hive_partitioning = true, hive_types_autocast = false) m
    JOIN batch b USING (task, task_number, point, epoch, spool, stored)
    WHERE m.kind = 'missed' AND m.packets > 0
)
SELECT *, greatest(complete_before, (SELECT max(s.time_ns) FROM seen s WHERE s.task = m.task
    AND s.task_number = m.task_number AND s.point = m.point AND s.stored = m.stored
    AND s.position < coalesce(m.first_behind, 9223372036854775807))) AS delivered
FROM missed m;

-- Of the packets without a match, those that a capture may have missed. Filled by analyse.py.
CREATE TEMP TABLE undetermined (task VARCHAR, task_number BIGINT, point VARCHAR, seq BIGINT);

-- part 2

-- Times in which a point was not observed.
CREATE TEMP TABLE gap AS
SELECT task, task_number, point, coalesce(complete_before, -9223372036854775808) AS from_ns,
    observed_from_ns AS until_ns
FROM batch WHERE observed_from_ns > coalesce(complete_before, -9223372036854775808);

INSERT INTO undetermined
SELECT DISTINCT u.task, u.task_number, u.point, u.seq
FROM unmatched u JOIN gap g
    ON g.task = u.task AND g.task_number = u.task_number AND g.point <> u.point
        AND u.time_ns + CASE u.point WHEN 'a' THEN timeout() ELSE skew() END >= g.from_ns
        AND u.time_ns - CASE u.point WHEN 'a' THEN skew() ELSE timeout() END < g.until_ns
EXCEPT FROM undetermined;

-- Counts by window. A packet belongs to the window in which it passed A; if only B observed it, in which it passed B.
CREATE TEMP TABLE counted AS
SELECT task, task_number, nth_window,
    sum(sent)::BIGINT AS sent, sum(received)::BIGINT AS received, sum(matched)::BIGINT AS matched,
    sum(lost)::BIGINT AS lost, sum(duplicated)::BIGINT AS duplicated, sum(reordered)::BIGINT AS reordered,
    sum(unexpected)::BIGINT AS unexpected, sum(given_up_sent)::BIGINT AS given_up_sent,
    sum(given_up_received)::BIGINT AS given_up_received, sum(identical)::BIGINT AS identical,
    coalesce(max(error), 0) AS stamp_error, min(delay + error) AS most_delay
FROM (
    SELECT a.task, a.task_number, window_of(a.time_ns) AS nth_window, 1 AS sent,
        (b_seq IS NOT NULL)::INT AS received, (b_seq IS NOT NULL)::INT AS matched,
        (b_seq IS NULL AND u.seq IS NULL)::INT AS lost, 0 AS duplicated, (r.seq IS NOT NULL)::INT AS reordered,
        0 AS unexpected, (u.seq IS NOT NULL)::INT AS given_up_sent, 0 AS given_up_received,
        is_identical::INT AS identical, error, delay
    FROM outcome_at_a a
    LEFT JOIN undetermined u
        ON u.task = a.task AND u.task_number = a.task_number AND u.seq = a.seq AND u.point = 'a'
    LEFT JOIN reordered r ON r.task = a.task AND r.task_number = a.task_number AND r.seq = a.seq
    UNION ALL
    SELECT b.task, b.task_number, window_of(a.time_ns), 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, NULL, NULL
    FROM outcome_at_b b JOIN sent a
        ON a.task = b.task AND a.task_number = b.task_number AND a.identity = b.identity AND a.nth = b.matched
    WHERE is_duplicate
    UNION ALL
    SELECT b.task, b.task_number, window_of(b.time_ns), 0, 1, 0, 0, 0, 0, (u.seq IS NULL)::INT, 0,
        (u.seq IS NOT NULL)::INT, 0, NULL, NULL
    FROM outcome_at_b b
    LEFT JOIN undetermined u
        ON u.task = b.task AND u.task_number = b.task_number AND u.seq = b.seq AND u.point = 'b'
    WHERE hit IS NULL AND NOT is_duplicate
)
GROUP BY task, task_number, nth_window;

-- Delays, and delay variations of consecutive packets of a flow. A variation is in the window of the packet that was
-- matched later.
CREATE TEMP TABLE value AS
SELECT task, task_number, 'delay' AS name, window_of(time_ns) AS nth_window, delay AS value
FROM outcome_at_a WHERE delay IS NOT NULL
UNION ALL
SELECT task, task_number, 'variation',
    window_of(CASE WHEN b_seq > previous_b_seq THEN time_ns ELSE previous_time END), delay - previous_delay
FROM outcome_at_a WHERE delay IS NOT NULL AND previous_delay IS NOT NULL;

-- Middle of the histogram bucket of a value, with 2^bits buckets for each power of two.
CREATE MACRO shift_of(v, bits) AS greatest(0, length(bin(abs(v))) - bits - 1);
CREATE MACRO middle(v, bits) AS sign(v)::BIGINT * (
    ((abs(v) >> shift_of(v, bits)) << shift_of(v, bits)) + ((1::BIGINT << shift_of(v, bits)) >> 1));
-- Nearest rank of a percentile.
CREATE MACRO rank_of(quantile, n) AS greatest(1, least(n, ceil(quantile::DOUBLE * n)::BIGINT));

-- Seconds: percentiles of up to 64 values are exact, those of more come from buckets.
CREATE MACRO exact_or_middle(v, r, n, low, high) AS
    CASE WHEN n <= 64 OR r = n THEN v ELSE greatest(low, least(high, middle(v, 10))) END;

CREATE TEMP TABLE spread AS
SELECT task, task_number, name, nth_window, n, low, total, high,
    exact_or_middle(v50, rank_of(0.5, n), n, low, high) AS p50,
    exact_or_middle(v90, rank_of(0.9, n), n, low, high) AS p90,
    exact_or_middle(v99, rank_of(0.99, n), n, low, high) AS p99,
    exact_or_middle(v999, rank_of(0.999, n), n, low, high) AS p999
FROM (
    SELECT task, task_number, name, nth_window, max(n) AS n, min(value) AS low, sum(value) AS total,
        max(value) AS high,
        max(value) FILTER (r = rank_of(0.5, n)) AS v50, max(value) FILTER (r = rank_of(0.9, n)) AS v90,
        max(value) FILTER (r = rank_of(0.99, n)) AS v99, max(value) FILTER (r = rank_of(0.999, n)) AS v999
    FROM (
        SELECT *, row_number() OVER (PARTITION BY task, task_number, name, nth_window ORDER BY value) AS r,
            count(*) OVER (PARTITION BY task, task_number, name, nth_window) AS n
        FROM value
    )
    GROUP BY task, task_number, name, nth_window
);

-- Clocks: the worst state of each point while the packets of a window may have passed both.
CREATE TEMP TABLE clock AS
WITH ends AS (
    SELECT task, task_number, min(nth_window) AS first, max(nth_window) AS last
    FROM counted GROUP BY task, task_number
), around AS (
    SELECT b.task, b.task_number, b.point, clock_machine, clock_error_ns,
        unnest(range(
            greatest(first, coalesce(
                window_of(complete_before - window_length() - timeout() - skew()) + 1, first)),
            least(last, window_of(complete + skew() - 1)) + 1)) AS nth_window
    FROM batch b JOIN ends USING (task, task_number)
    WHERE kind = 'observed'
)
SELECT task, task_number, nth_window, point,
    CASE WHEN min(clock_machine) = max(clock_machine) THEN min(clock_machine) END AS machine,
    CASE WHEN bool_and(clock_error_ns IS NOT NULL) THEN max(clock_error_ns) END AS error
FROM around GROUP BY task, task_number, nth_window, point;

CREATE TEMP TABLE clocks AS
SELECT c.task, c.task_number, c.nth_window,
    CASE WHEN a.point IS NULL OR b.point IS NULL THEN 'unknown'
        WHEN a.machine = b.machine THEN NULL
        WHEN a.error IS NULL THEN 'first' WHEN b.error IS NULL THEN 'second' END AS not_synchronised,
    CASE WHEN a.machine = b.machine THEN 0 ELSE a.error + b.error END AS "offset"
FROM counted c
LEFT JOIN clock a
    ON a.task = c.task AND a.task_number = c.task_number AND a.nth_window = c.nth_window AND a.point = 'a'
LEFT JOIN clock b
    ON b.task = c.task AND b.task_number = c.task_number AND b.nth_window = c.nth_window AND b.point = 'b';

-- Up to here, both points are complete.
CREATE TEMP TABLE complete AS
SELECT task, task_number, min(complete) - timeout() - skew() AS until
FROM (SELECT task, task_number, point, max(complete) AS complete FROM batch GROUP BY ALL)
GROUP BY task, task_number;

-- Results of each second.
CREATE TEMP TABLE result AS
SELECT c.task, c.task_number, c.nth_window * window_length() AS begin_ns,
    sent, received, matched, lost, duplicated, reordered, unexpected, given_up_sent, given_up_received, identical,
    CASE WHEN not_synchronised IS NULL THEN stamp_error + "offset" END AS error_ns, not_synchronised,
    (not_synchronised IS NULL AND coalesce(most_delay + "offset" < 0, false))::INT AS contradicts_the_clocks,
    CASE WHEN not_synchronised IS NULL THEN struct_pack(n := d.n, min := d.low, total := d.total, p50 := d.p50,
        p90 := d.p90, p99 := d.p99, p999 := d.p999, max := d.high) END AS delay,
    struct_pack(n := v.n, min := v.low, total := v.total, p50 := v.p50, p90 := v.p90, p99 := v.p99,
        p999 := v.p999, max := v.high) AS variation
FROM counted c
JOIN clocks k ON k.task = c.task AND k.task_number = c.task_number AND k.nth_window = c.nth_window
JOIN complete e ON e.task = c.task AND e.task_number = c.task_number AND (c.nth_window + 1) * window_length() <= e.until
LEFT JOIN spread d
    ON d.task = c.task AND d.task_number = c.task_number AND d.nth_window = c.nth_window AND d.name = 'delay'
LEFT JOIN spread v
    ON v.task = c.task AND v.task_number = c.task_number AND v.nth_window = c.nth_window AND v.name = 'variation';
