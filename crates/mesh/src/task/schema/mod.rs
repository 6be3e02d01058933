//! OpenAPI schema of tasks.

use serde_json::json;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wirestamp_metrics::emodel::Codec;

use super::spec::{DEFAULT_RATE, MAX_BYTES, MAX_DSCP, MIN_AUTHENTICATED_BYTES, MIN_BYTES, RATES};
use super::{End, ForeignPoint, Point, Task};
use crate::Name;

/// Direction of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Request: a task to create.
    Request,
    /// Response: a stored task.
    Response,
}

/// Presence of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// It has a default value.
    Default,
    Optional,
}

impl PartialSchema for Task {
    fn schema() -> RefOr<Schema> {
        tasks(Direction::Request)
    }
}

impl ToSchema for Task {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Name::name().into_owned(), Name::schema()));
    }
}

/// Schema of a stored task with its number.
pub(crate) fn entered_schema() -> RefOr<Schema> {
    tasks(Direction::Response)
}

fn tasks(direction: Direction) -> RefOr<Schema> {
    let kinds =
        KINDS.iter().fold(OneOfBuilder::new(), |kinds, kind| kinds.item(kind.task(direction)));
    kinds.into()
}

/// A key with its presence and schema.
type Key = (&'static str, Presence, RefOr<Schema>);

/// A kind of task.
struct Kind {
    measure: &'static str,
    description: &'static str,
    keys: fn(Direction) -> Vec<Key>,
    is_scheduled: bool,
}

const KINDS: [Kind; 6] = [
    Kind {
        measure: "volume",
        description: "Packets and bytes at a point, per minute.",
        keys: |_| vec![at(), filter()],
        is_scheduled: true,
    },
    Kind {
        measure: "traffic",
        description: "Packets and bytes at a point, per interval.",
        keys: |direction| {
            let description = "At min a second, and a divisor of an hour; default 1s.";
            vec![
                at(),
                filter(),
                ("interval", Presence::Default, duration(description, "10s", direction)),
            ]
        },
        is_scheduled: true,
    },
    Kind {
        measure: "passive-delay",
        description: "One-way delay, its variation, loss, reordering and duplication of the packets that pass two points.",
        keys: |_| {
            let from = point("First point.", "roof/eth0");
            let to = point("Second point, different from the first.", "cellar/eth1");
            vec![
                ("from", Presence::Required, from),
                ("to", Presence::Required, to),
                ("share", Presence::Default, share()),
                filter(),
                codec(),
            ]
        },
        is_scheduled: true,
    },
    Kind {
        measure: "passive-delay",
        description: "The same for packets whose digests foreign exporters report (PSAMP, RFC 5476).",
        keys: |direction| {
            let from = foreign("First point: ipfix:ADDRESS/DOMAIN[/POINT].");
            let to = foreign("Second point, different from the first.");
            let description = "Max error of the exporters' clocks, at max an hour, if known.";
            vec![
                ("from", Presence::Required, from),
                ("to", Presence::Required, to),
                ("clock_error", Presence::Optional, duration(description, "1ms", direction)),
            ]
        },
        is_scheduled: false,
    },
    Kind {
        measure: "active-delay",
        description: "The same for test packets (STAMP, RFC 8762) that one probe sends and another reflects.",
        keys: |_| active(),
        is_scheduled: true,
    },
    Kind {
        measure: "flows",
        description: "The quality of each flow at a point.",
        keys: |_| vec![at(), filter()],
        is_scheduled: true,
    },
];

impl Kind {
    fn task(&self, direction: Direction) -> Object {
        let Self { measure, description, keys, is_scheduled } = self;
        let task = ObjectBuilder::new().schema_type(Type::Object).title(Some(*measure));
        let task = task.description(Some(*description)).property("measure", constant(measure));
        let schedule = is_scheduled.then(|| ("schedule", Presence::Optional, schedule(direction)));
        let keys = keys(direction).into_iter().chain(common(direction)).chain(schedule);
        let task = keys.fold(task.required("measure"), |task, (name, presence, schema)| {
            let is_required = presence == Presence::Required
                || presence == Presence::Default && direction == Direction::Response;
            let task = task.property(name, schema);
            if is_required { task.required(name) } else { task }
        });
        match direction {
            Direction::Request => task.additional_properties(Some(no_other_keys())).build(),
            Direction::Response => task.build(),
        }
    }
}

/// Keys of all kinds.
fn common(direction: Direction) -> Vec<Key> {
    let named = RefOr::Ref(Ref::from_schema_name(Name::name()));
    match direction {
        // The name is in the path.
        Direction::Request => vec![("name", Presence::Optional, named)],
        Direction::Response => vec![
            ("number", Presence::Required, number(0.0, None, "Unique; never reused.").into()),
            ("name", Presence::Required, named),
            ("made", Presence::Required, time("Creation time, in whole seconds.").build().into()),
            ("ended", Presence::Required, ended()),
        ],
    }
}

fn active() -> Vec<Key> {
    let end = |description, example: &str| {
        text(&End::pattern(), description).examples([example]).build().into()
    };
    let address = ["ipv4", "ipv6"].map(|format| {
        let address = ObjectBuilder::new().schema_type(Type::String);
        address.format(Some(SchemaFormat::Custom(format.to_owned()))).build()
    });
    let address = address.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
    let address = address.description(Some(
        "Address of the reflector, if it differs from the one that the controller sees.",
    ));
    let port =
        number(1.0, Some(65_535.0), "UDP port of the reflector; by default each task has its own.");
    let rate = ObjectBuilder::new().schema_type(Type::Number).default(Some(json!(DEFAULT_RATE)));
    let rate = rate.minimum(Some(*RATES.start())).maximum(Some(*RATES.end()));
    let description = format!(
        "IP payload of each packet, in bytes; at min (and by default) {MIN_AUTHENTICATED_BYTES} if authenticated."
    );
    let mut bytes = number(MIN_BYTES.into(), Some(MAX_BYTES.into()), &description);
    bytes.default = Some(json!(MIN_BYTES));
    let mut dscp = number(0.0, Some(MAX_DSCP.into()), "DSCP (RFC 2474).");
    dscp.default = Some(json!(0));
    let distribution = ObjectBuilder::new().schema_type(Type::String);
    let distribution = distribution.enum_values(Some(["periodic", "poisson"]));
    let distribution = distribution.default(Some(json!("periodic")));
    let authenticated = ObjectBuilder::new().schema_type(Type::Boolean);
    let description = "Whether packets carry an authentication code (RFC 8762 section 4.4).";
    let authenticated = authenticated.description(Some(description)).default(Some(json!(false)));
    vec![
        ("from", Presence::Required, end("Sender: PROBE, or PROBE@NAMESPACE.", "roof")),
        ("to", Presence::Required, end("Reflector, different from the sender.", "cellar")),
        ("address", Presence::Optional, RefOr::T(address.build().into())),
        ("port", Presence::Optional, port.into()),
        ("rate", Presence::Default, rate.description(Some("Packets per second.")).build().into()),
        ("bytes", Presence::Default, bytes.into()),
        ("distribution", Presence::Default, distribution.build().into()),
        ("dscp", Presence::Default, dscp.into()),
        ("authenticated", Presence::Default, authenticated.build().into()),
        codec(),
    ]
}

fn at() -> Key {
    (
        "at",
        Presence::Required,
        point("Point: PROBE/INTERFACE, or PROBE/INTERFACE@NAMESPACE.", "roof/eth0"),
    )
}

fn filter() -> Key {
    let description = "Capture filter (pcap-filter(7)); default all packets.";
    (
        "filter",
        Presence::Optional,
        text("[^\\u0000]*", description).examples(["udp portrange 5004-5099"]).build().into(),
    )
}

fn codec() -> Key {
    let codec = ObjectBuilder::new().schema_type(Type::String);
    let codec = codec.enum_values(Some(Codec::all().map(|it| it.to_string())));
    let description = "Codec for call quality.";
    ("codec", Presence::Optional, codec.description(Some(description)).build().into())
}

fn foreign(description: &str) -> RefOr<Schema> {
    text(&ForeignPoint::pattern(), description).examples(["ipfix:192.0.2.7/3"]).build().into()
}

fn point(description: &str, example: &str) -> RefOr<Schema> {
    text(&Point::pattern(), description).examples([example]).build().into()
}

fn share() -> RefOr<Schema> {
    let share = ObjectBuilder::new().schema_type(Type::Number).default(Some(json!(1.0)));
    let share = share.exclusive_minimum(Some(0.0)).maximum(Some(1.0));
    let description =
        "Share of packets to sample, selected by content, so that both points select the same.";
    share.description(Some(description)).build().into()
}

/// Schema of a schedule: permanent, once or repeated.
fn schedule(direction: Direction) -> RefOr<Schema> {
    let begin = || {
        let schedule = ObjectBuilder::new().schema_type(Type::Object);
        let schedule = schedule.property("start", time("Begin."));
        let schedule = schedule.property("until", time("End.")).property(
            "for",
            duration("Duration, of each repetition; at min a second.", "10m", direction),
        );
        schedule.additional_properties(Some(no_other_keys()))
    };
    let every = duration("Repetition interval, not shorter than `for`.", "1h", direction);
    let again = begin().property("every", every).required("every").required("for");
    let schedule = AnyOfBuilder::new().item(begin().build()).item(again.build());
    let description = "When it runs; by default from its creation until it is ended.";
    RefOr::T(schedule.description(Some(description)).build().into())
}

fn no_other_keys() -> AdditionalProperties<Schema> {
    AdditionalProperties::FreeForm(false)
}

fn constant(value: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])).build()
}

/// Text that matches this pattern completely.
fn text(pattern: &str, description: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.pattern(Some(format!("^{pattern}$"))).description(Some(description))
}

fn number(min: f64, max: Option<f64>, description: &str) -> Object {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min));
    number.maximum(max).description(Some(description)).build()
}

fn time(description: &str) -> ObjectBuilder {
    let time = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    time.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn ended() -> RefOr<Schema> {
    let ended = time("End time, if it was ended.");
    let string_or_null = [Type::String, Type::Null].into_iter().collect();
    ended.schema_type(SchemaType::Array(string_or_null)).build().into()
}

/// Durations such as `1h 30m`. Other notations are accepted, too.
fn duration(description: &str, example: &str, direction: Direction) -> RefOr<Schema> {
    const COUNT: &str = "[0-9]{1,9}";
    let duration = ObjectBuilder::new().schema_type(Type::String);
    let duration = duration.description(Some(description)).examples([example]);
    if direction == Direction::Response {
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
