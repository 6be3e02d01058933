//! What tasks look like, for programs: which keys each has, and what these can be.

use serde_json::json;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wirestamp_metrics::emodel::Codec;

use super::written::{AUTHENTICATED_BYTES, BYTES, MOST_BYTES, MOST_DSCP, RATE, RATES};
use super::{End, ForeignPoint, Point, Task};
use crate::Name;

/// Who says what a task is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// Who enters it.
    Entering,
    /// The controller.
    TaskRecord,
}

/// Whether a key is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Always,
    /// It has a value that is usual, and is taken where nothing is said.
    Usually,
    Maybe,
}

impl PartialSchema for Task {
    fn schema() -> RefOr<Schema> {
        tasks(Said::Entering)
    }
}

impl ToSchema for Task {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Name::name().into_owned(), Name::schema()));
    }
}

/// A task that somebody has entered, with its number.
pub(crate) fn entered_schema() -> RefOr<Schema> {
    tasks(Said::TaskRecord)
}

fn tasks(said: Said) -> RefOr<Schema> {
    let kinds = KINDS.iter().fold(OneOfBuilder::new(), |kinds, kind| kinds.item(kind.task(said)));
    kinds.into()
}

/// A key of a task.
type Key = (&'static str, There, RefOr<Schema>);

/// A kind of task, by what it measures.
struct Kind {
    measure: &'static str,
    says: &'static str,
    keys: fn(Said) -> Vec<Key>,
    is_scheduled: bool,
}

const KINDS: [Kind; 6] = [
    Kind {
        measure: "volume",
        says: "Packets and bytes at a point, by the minute.",
        keys: |_| vec![at(), filter()],
        is_scheduled: true,
    },
    Kind {
        measure: "traffic",
        says: "Packets and bytes of each interval of time at a point.",
        keys: |said| {
            let says = "A second at the least, and a whole part of an hour; 1s if nothing is said.";
            vec![at(), filter(), ("interval", There::Usually, duration(says, "10s", said))]
        },
        is_scheduled: true,
    },
    Kind {
        measure: "passive-delay",
        says: "One-way delay, its variation, loss, reordering and duplication of the packets that pass two points.",
        keys: |_| {
            let from = point("Where they come by first.", "roof/eth0");
            let to = point("Where they come by later; another point.", "cellar/eth1");
            vec![
                ("from", There::Always, from),
                ("to", There::Always, to),
                ("share", There::Usually, share()),
                filter(),
                codec(),
            ]
        },
        is_scheduled: true,
    },
    Kind {
        measure: "passive-delay",
        says: "The same of packets whose digests other programs report (PSAMP, RFC 5476).",
        keys: |said| {
            let from = foreign("Where they come by first: ipfix:ADDRESS/DOMAIN[/POINT].");
            let to = foreign("Where they come by later; another point.");
            let says =
                "How far off the exporters' clocks can be, an hour at the most, if that is known.";
            vec![
                ("from", There::Always, from),
                ("to", There::Always, to),
                ("clock_error", There::Maybe, duration(says, "1ms", said)),
            ]
        },
        is_scheduled: false,
    },
    Kind {
        measure: "active-delay",
        says: "The same of test packets (STAMP, RFC 8762) that one probe sends and another reflects.",
        keys: |_| active(),
        is_scheduled: true,
    },
    Kind {
        measure: "flows",
        says: "The quality of each flow at a point.",
        keys: |_| vec![at(), filter()],
        is_scheduled: true,
    },
];

impl Kind {
    fn task(&self, said: Said) -> Object {
        let Self { measure, says, keys, is_scheduled } = self;
        let task = ObjectBuilder::new().schema_type(Type::Object).title(Some(*measure));
        let task = task.description(Some(*says)).property("measure", only(measure));
        let schedule = is_scheduled.then(|| ("schedule", There::Maybe, schedule(said)));
        let keys = keys(said).into_iter().chain(common(said)).chain(schedule);
        let task = keys.fold(task.required("measure"), |task, (name, there, schema)| {
            let is_there =
                there == There::Always || there == There::Usually && said == Said::TaskRecord;
            let task = task.property(name, schema);
            if is_there { task.required(name) } else { task }
        });
        match said {
            Said::Entering => task.additional_properties(Some(closed())).build(),
            Said::TaskRecord => task.build(),
        }
    }
}

/// What every task has.
fn common(said: Said) -> Vec<Key> {
    let named = RefOr::Ref(Ref::from_schema_name(Name::name()));
    match said {
        // It is in the path.
        Said::Entering => vec![("name", There::Maybe, named)],
        Said::TaskRecord => vec![
            ("number", There::Always, number(0.0, None, "No other task ever has it.").into()),
            ("name", There::Always, named),
            ("made", There::Always, time("When it was entered, in whole seconds.").build().into()),
            ("ended", There::Always, ended()),
        ],
    }
}

fn active() -> Vec<Key> {
    let end = |says, example: &str| text(&End::form(), says).examples([example]).build().into();
    let address = ["ipv4", "ipv6"].map(|format| {
        let address = ObjectBuilder::new().schema_type(Type::String);
        address.format(Some(SchemaFormat::Custom(format.to_owned()))).build()
    });
    let address = address.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
    let address = address
        .description(Some("Where that one can be reached, if not where the controller sees it."));
    let port = number(
        1.0,
        Some(65_535.0),
        "The port of UDP that it listens at, if not one of the task's own.",
    );
    let rate = ObjectBuilder::new().schema_type(Type::Number).default(Some(json!(RATE)));
    let rate = rate.minimum(Some(*RATES.start())).maximum(Some(*RATES.end()));
    let says = format!(
        "Of each packet above IP; where it is authenticated {AUTHENTICATED_BYTES} at the least, and if nothing is said."
    );
    let mut bytes = number(BYTES.into(), Some(MOST_BYTES.into()), &says);
    bytes.default = Some(json!(BYTES));
    let mut dscp = number(0.0, Some(MOST_DSCP.into()), "The class of service (RFC 2474).");
    dscp.default = Some(json!(0));
    let distribution = ObjectBuilder::new().schema_type(Type::String);
    let distribution = distribution.enum_values(Some(["periodic", "poisson"]));
    let distribution = distribution.default(Some(json!("periodic")));
    let authenticated = ObjectBuilder::new().schema_type(Type::Boolean);
    let says = "Whether each packet carries a code that only the two probes can make (RFC 8762 section 4.4).";
    let authenticated = authenticated.description(Some(says)).default(Some(json!(false)));
    vec![
        ("from", There::Always, end("Who sends: PROBE, or PROBE@NAMESPACE.", "roof")),
        ("to", There::Always, end("Who reflects; another end.", "cellar")),
        ("address", There::Maybe, RefOr::T(address.build().into())),
        ("port", There::Maybe, port.into()),
        ("rate", There::Usually, rate.description(Some("Packets a second.")).build().into()),
        ("bytes", There::Usually, bytes.into()),
        ("distribution", There::Usually, distribution.build().into()),
        ("dscp", There::Usually, dscp.into()),
        ("authenticated", There::Usually, authenticated.build().into()),
        codec(),
    ]
}

fn at() -> Key {
    (
        "at",
        There::Always,
        point("Where: PROBE/INTERFACE, or PROBE/INTERFACE@NAMESPACE.", "roof/eth0"),
    )
}

fn filter() -> Key {
    let says = "Which packets, in the syntax of pcap-filter(7); all, if there is none.";
    (
        "filter",
        There::Maybe,
        text("[^\\u0000]*", says).examples(["udp portrange 5004-5099"]).build().into(),
    )
}

fn codec() -> Key {
    let codec = ObjectBuilder::new().schema_type(Type::String);
    let codec = codec.enum_values(Some(Codec::ALL.map(|it| it.to_string())));
    let says = "The codec of the calls that the path is judged by.";
    ("codec", There::Maybe, codec.description(Some(says)).build().into())
}

fn foreign(says: &str) -> RefOr<Schema> {
    text(&ForeignPoint::form(), says).examples(["ipfix:192.0.2.7/3"]).build().into()
}

fn point(says: &str, example: &str) -> RefOr<Schema> {
    text(&Point::form(), says).examples([example]).build().into()
}

fn share() -> RefOr<Schema> {
    let share = ObjectBuilder::new().schema_type(Type::Number).default(Some(json!(1.0)));
    let share = share.exclusive_minimum(Some(0.0)).maximum(Some(1.0));
    let says = "The share of packets that are looked at, chosen by their contents, the same at both points.";
    share.description(Some(says)).build().into()
}

/// All the time, once, or again and again.
fn schedule(said: Said) -> RefOr<Schema> {
    let begin = || {
        let schedule = ObjectBuilder::new().schema_type(Type::Object);
        let schedule = schedule.property("start", time("Not before this."));
        let schedule = schedule.property("until", time("Not from then on.")).property(
            "for",
            duration("For so long, each time; a second at the least.", "10m", said),
        );
        schedule.additional_properties(Some(closed()))
    };
    let every = duration("At this distance, which is not less than `for`.", "1h", said);
    let again = begin().property("every", every).required("every").required("for");
    let schedule = AnyOfBuilder::new().item(begin().build()).item(again.build());
    let says = "When it runs; from when it was entered until it is ended, if nothing is said.";
    RefOr::T(schedule.description(Some(says)).build().into())
}

fn closed() -> AdditionalProperties<Schema> {
    AdditionalProperties::FreeForm(false)
}

fn only(value: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])).build()
}

/// Text that has this form as a whole.
fn text(form: &str, says: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.pattern(Some(format!("^{form}$"))).description(Some(says))
}

fn number(least: f64, most: Option<f64>, says: &str) -> Object {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least));
    number.maximum(most).description(Some(says)).build()
}

fn time(says: &str) -> ObjectBuilder {
    let time = ObjectBuilder::new().schema_type(Type::String).description(Some(says));
    time.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn ended() -> RefOr<Schema> {
    let ended = time("When it was ended, if it was.");
    let there_or_null = [Type::String, Type::Null].into_iter().collect();
    ended.schema_type(SchemaType::Array(there_or_null)).build().into()
}

/// As `1h 30m`. What people write otherwise is read, too, and may be longer than this.
fn duration(says: &str, example: &str, said: Said) -> RefOr<Schema> {
    const COUNT: &str = "[0-9]{1,9}";
    let duration = ObjectBuilder::new().schema_type(Type::String);
    let duration = duration.description(Some(says)).examples([example]);
    if said == Said::TaskRecord {
        return duration.build().into();
    }
    let mut shapes = Vec::new();
    let mut units = &["h", "m", "s", "ms", "µs", "ns"][..];
    while let [longest, shorter @ ..] = units {
        let shorter_ones: String =
            shorter.iter().map(|unit| format!("( {COUNT}{unit})?")).collect();
        shapes.push(format!("{COUNT}{longest}{shorter_ones}"));
        units = shorter;
    }
    duration.pattern(Some(format!("^({})$", shapes.join("|")))).build().into()
}

#[cfg(test)]
mod tests;
