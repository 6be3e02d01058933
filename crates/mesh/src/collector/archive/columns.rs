//! Columns of archived results: the keys of HTTP responses, flattened.

use wirestamp_results::Field;

use crate::collector::{Counted, Measured, Spread};

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

/// Databases have signed integers, so there are no larger values.
fn whole(count: u64) -> Option<i64> {
    i64::try_from(count).ok()
}
