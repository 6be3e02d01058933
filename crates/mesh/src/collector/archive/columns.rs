//! Columns of archived results: the keys of HTTP responses, flattened.

use wirestamp_results::Field;

use crate::collector::{Counted, Measured, MeasuredReturn, Spread};

pub(super) const MEASURED: &[Field<Measured>] = &[
    Field::whole("begin_ns", |it| Some(it.begin_ns)),
    Field::whole("sent", |it| whole(it.counts.sent)),
    Field::whole("received", |it| whole(it.counts.received)),
    Field::whole("matched", |it| whole(it.counts.matched)),
    Field::whole("lost", |it| whole(it.counts.lost)),
    Field::whole("duplicated", |it| whole(it.counts.duplicated)),
    Field::whole("reordered", |it| whole(it.counts.reordered)),
    Field::whole("unexpected", |it| whole(it.counts.unexpected)),
    Field::whole("given_up_sent", |it| whole(it.counts.undetermined_sent)),
    Field::whole("given_up_received", |it| whole(it.counts.undetermined_received)),
    Field::whole("identical", |it| whole(it.counts.identical)),
    Field::whole("delay_min_ns", |it| delay(it).map(|it| it.min)),
    Field::real("delay_mean_ns", |it| delay(it).map(|it| it.mean)),
    Field::real("delay_stddev_ns", |it| delay(it).map(|it| it.stddev)),
    Field::whole("delay_p50_ns", |it| delay(it)?.p50),
    Field::whole("delay_p90_ns", |it| delay(it)?.p90),
    Field::whole("delay_p99_ns", |it| delay(it)?.p99),
    Field::whole("delay_p999_ns", |it| delay(it)?.p999),
    Field::whole("delay_max_ns", |it| delay(it).map(|it| it.max)),
    Field::real("above_minimum_mean_ns", |it| above(it).map(|it| it.mean)),
    Field::whole("above_minimum_p99_ns", |it| above(it)?.p99),
    Field::whole("above_minimum_max_ns", |it| above(it).map(|it| it.max)),
    Field::whole("variation_min_ns", |it| variation(it).map(|it| it.min)),
    Field::real("variation_mean_ns", |it| variation(it).map(|it| it.mean)),
    Field::real("variation_stddev_ns", |it| variation(it).map(|it| it.stddev)),
    Field::whole("variation_p50_ns", |it| variation(it)?.p50),
    Field::whole("variation_p90_ns", |it| variation(it)?.p90),
    Field::whole("variation_p99_ns", |it| variation(it)?.p99),
    Field::whole("variation_p999_ns", |it| variation(it)?.p999),
    Field::whole("variation_max_ns", |it| variation(it).map(|it| it.max)),
    Field::whole("error_ns", |it| it.error_ns),
    Field::text("not_synchronised", |it| it.not_synchronised.map(|why| why.as_ref().to_owned())),
    Field::whole("contradicts_the_clocks", |it| Some(it.contradicts_the_clocks.into())),
    Field::real("mos", |it| it.mos),
    Field::text("no_mos", |it| it.no_mos.map(|why| why.as_ref().to_owned())),
    Field::whole("answered", |it| whole(path(it)?.answered)),
    Field::whole("return_lost", |it| whole(path(it)?.lost)),
    Field::whole("return_undetermined", |it| whole(path(it)?.undetermined)),
    Field::whole("round_trip_min_ns", |it| Some(trip(it)?.min)),
    Field::real("round_trip_mean_ns", |it| Some(trip(it)?.mean)),
    Field::real("round_trip_stddev_ns", |it| Some(trip(it)?.stddev)),
    Field::whole("round_trip_p50_ns", |it| trip(it)?.p50),
    Field::whole("round_trip_p90_ns", |it| trip(it)?.p90),
    Field::whole("round_trip_p99_ns", |it| trip(it)?.p99),
    Field::whole("round_trip_p999_ns", |it| trip(it)?.p999),
    Field::whole("round_trip_max_ns", |it| Some(trip(it)?.max)),
    Field::whole("round_trip_error_ns", |it| path(it)?.round_trip_error_ns),
    Field::whole("return_delay_min_ns", |it| Some(return_delay(it)?.min)),
    Field::real("return_delay_mean_ns", |it| Some(return_delay(it)?.mean)),
    Field::real("return_delay_stddev_ns", |it| Some(return_delay(it)?.stddev)),
    Field::whole("return_delay_p50_ns", |it| return_delay(it)?.p50),
    Field::whole("return_delay_p90_ns", |it| return_delay(it)?.p90),
    Field::whole("return_delay_p99_ns", |it| return_delay(it)?.p99),
    Field::whole("return_delay_p999_ns", |it| return_delay(it)?.p999),
    Field::whole("return_delay_max_ns", |it| Some(return_delay(it)?.max)),
    Field::whole("return_error_ns", |it| path(it)?.error_ns),
    Field::whole("return_contradicts_the_clocks", |it| {
        Some(path(it)?.contradicts_the_clocks.into())
    }),
    Field::text("no_times", |it| Some(path(it)?.no_times?.as_ref().to_owned())),
    Field::text("no_return_error", |it| Some(path(it)?.no_error?.as_ref().to_owned())),
    Field::text("no_return_path", |it| Some(it.no_return_path?.as_ref().to_owned())),
    Field::time("begin_time", |it| Some(it.begin_ns)),
];

pub(super) const COUNTED: &[Field<Counted>] = &[
    Field::whole("begin_ns", |it| Some(it.begin_ns)),
    Field::whole("packets", |it| whole(it.packets)),
    Field::whole("bytes", |it| whole(it.bytes)),
    Field::whole("missed", |it| whole(it.missed)),
    Field::whole("watched_ns", |it| Some(it.watched_ns)),
    Field::time("begin_time", |it| Some(it.begin_ns)),
];

fn delay(measured: &Measured) -> Option<&Spread> {
    measured.delay_ns.as_ref()
}

fn above(measured: &Measured) -> Option<&Spread> {
    measured.above_minimum_ns.as_ref()
}

fn variation(measured: &Measured) -> Option<&Spread> {
    measured.variation_ns.as_ref()
}

fn path(measured: &Measured) -> Option<&MeasuredReturn> {
    measured.return_path.as_ref()
}

fn trip(measured: &Measured) -> Option<&Spread> {
    path(measured)?.round_trip_ns.as_ref()
}

fn return_delay(measured: &Measured) -> Option<&Spread> {
    path(measured)?.delay_ns.as_ref()
}

/// Databases have signed integers, so there are no larger values.
fn whole(count: u64) -> Option<i64> {
    i64::try_from(count).ok()
}
