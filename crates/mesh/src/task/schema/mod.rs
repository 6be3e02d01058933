//! Keys of each kind of task ([`KINDS`]), and their OpenAPI schema.

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wirestamp_metrics::emodel::Codec;

use super::measure::{
    DEFAULT_RATE, MAX_BYTES, MAX_DSCP, MIN_AUTHENTICATED_BYTES, MIN_BYTES, RATES, SHARDS,
};
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

/// A kind of task and its keys, without `name` and `measure`, which all kinds have.
pub(super) struct Kind {
    pub(super) measure: &'static str,
    /// Whether its points are those of foreign exporters.
    pub(super) is_foreign: bool,
    description: &'static str,
    pub(super) required: &'static [&'static str],
    /// Optional keys with a default value.
    pub(super) defaulted: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
}

pub(super) const KINDS: [Kind; 6] = [
    Kind {
        measure: "volume",
        is_foreign: false,
        description: "Packets and bytes at a point, per minute.",
        required: &["at"],
        defaulted: &[],
        optional: &["filter", "schedule"],
    },
    Kind {
        measure: "traffic",
        is_foreign: false,
        description: "Packets and bytes at a point, per interval.",
        required: &["at"],
        defaulted: &["interval"],
        optional: &["filter", "schedule"],
    },
    Kind {
        measure: "passive-delay",
        is_foreign: false,
        description: "One-way delay, its variation, loss, reordering and duplication of the packets that pass two points.",
        required: &["from", "to"],
        defaulted: &["share"],
        optional: &["filter", "codec", "schedule", "archive", "shards"],
    },
    Kind {
        measure: "passive-delay",
        is_foreign: true,
        description: "The same for packets whose digests foreign exporters report (PSAMP, RFC 5476).",
        required: &["from", "to"],
        defaulted: &[],
        optional: &["clock_error", "archive"],
    },
    Kind {
        measure: "active-delay",
        is_foreign: false,
        description: "The same for test packets (STAMP, RFC 8762) that one probe sends and another reflects.",
        required: &["from", "to"],
        defaulted: &["rate", "bytes", "distribution", "dscp", "authenticated"],
        optional: &["address", "port", "codec", "schedule", "archive"],
    },
    Kind {
        measure: "flows",
        is_foreign: false,
        description: "The quality of each flow at a point.",
        required: &["at"],
        defaulted: &[],
        optional: &["filter", "schedule"],
    },
];

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
    let kinds: Vec<_> = KINDS.iter().map(|kind| kind.task(direction)).collect();
    serde_json::from_value(json!({ "oneOf": kinds })).expect("a schema: a test reads it")
}

impl Kind {
    /// Its keys, without `name` and `measure`.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static str> {
        [self.required, self.defaulted, self.optional].into_iter().flatten().copied()
    }

    fn task(&self, direction: Direction) -> Value {
        // In a request, the name is in the path.
        let (required, optional): (Vec<&str>, &[&str]) = match direction {
            Direction::Request => ([&["measure"], self.required].concat(), &["name"]),
            Direction::Response => {
                let generated = &["number", "name", "made", "ended", "unconnected"];
                ([&["measure"], self.required, self.defaulted, generated].concat(), &[])
            }
        };
        let keys = self.keys().chain(required.iter().copied()).chain(optional.iter().copied());
        let properties: Map<_, _> =
            keys.map(|key| (key.to_owned(), self.property(key, direction))).collect();
        let mut task = json!({
            "type": "object", "title": self.measure, "description": self.description,
            "properties": properties, "required": required,
        });
        if direction == Direction::Request {
            task["additionalProperties"] = json!(false);
        }
        task
    }

    /// Schema of a key.
    fn property(&self, key: &str, direction: Direction) -> Value {
        let point = |description| text(&Point::pattern(), description, "roof/eth0");
        match key {
            "measure" => json!({ "type": "string", "enum": [self.measure] }),
            "name" => json!({ "$ref": "#/components/schemas/Name" }),
            "number" => integer(0, None, None, "Unique; never reused."),
            "unconnected" => json!({
                "type": "array", "items": { "$ref": "#/components/schemas/Name" },
                "description": "Its probes that are not connected; empty if it has ended.",
            }),
            "made" => time("Creation time, in whole seconds."),
            "ended" => {
                let mut ended = time("End time, if it was ended.");
                ended["type"] = json!(["string", "null"]);
                ended
            }
            "at" => point("Point: PROBE/INTERFACE, or PROBE/INTERFACE@NAMESPACE."),
            "from" | "to" => self.end(key),
            "filter" => text(
                "[^\\u0000]*",
                "Capture filter (pcap-filter(7)); default all packets.",
                "udp portrange 5004-5099",
            ),
            "interval" => duration(
                "At least a second, and a divisor of an hour; default 1s.",
                "10s",
                direction,
            ),
            "share" => json!({
                "type": "number", "default": 1.0, "exclusiveMinimum": 0, "maximum": 1,
                "description": "Share of packets to sample, selected by content, so that both points select the same.",
            }),
            "shards" => integer(
                *SHARDS.start(),
                Some(*SHARDS.end()),
                Some(*SHARDS.start()),
                "Number of shards: packets are divided by their flow, and each shard may be at another collector.",
            ),
            "clock_error" => duration(
                "Max error of the exporters' clocks, at most an hour, if known.",
                "1ms",
                direction,
            ),
            "codec" => json!({
                "type": "string", "enum": Codec::all().map(Codec::name).to_vec(),
                "description": "Codec for call quality.",
            }),
            "schedule" => schedule(direction),
            "archive" => json!({
                "type": "string", "enum": ["results", "observations"],
                "description": "What the collector archives: results only (default), or also the observations of both points.",
            }),
            "address" => json!({
                "anyOf": [{ "type": "string", "format": "ipv4" }, { "type": "string", "format": "ipv6" }],
                "description": "Address of the reflector, if it differs from the one that the controller sees.",
            }),
            "port" => integer(
                1,
                Some(65_535),
                None,
                "UDP port of the reflector; by default each task has its own.",
            ),
            "rate" => json!({
                "type": "number", "default": DEFAULT_RATE, "minimum": RATES.start(), "maximum": RATES.end(),
                "description": "Packets per second.",
            }),
            "bytes" => {
                let description = format!(
                    "IP payload of each packet, in bytes; at min (and by default) {MIN_AUTHENTICATED_BYTES} if \
                     authenticated."
                );
                integer(MIN_BYTES, Some(MAX_BYTES), Some(MIN_BYTES), &description)
            }
            "distribution" => json!({
                "type": "string", "enum": ["periodic", "poisson"], "default": "periodic",
            }),
            "dscp" => integer(0, Some(MAX_DSCP.into()), Some(0), "DSCP (RFC 2474)."),
            "authenticated" => json!({
                "type": "boolean", "default": false,
                "description": "Whether packets carry an authentication code (RFC 8762 section 4.4).",
            }),
            other => unreachable!("{other} has no schema"),
        }
    }

    /// Schema of `from` or `to`.
    fn end(&self, key: &str) -> Value {
        let is_first = key == "from";
        let of = |first, second| if is_first { first } else { second };
        match self.measure {
            "active-delay" => text(
                &End::pattern(),
                of("Sender: PROBE, or PROBE@NAMESPACE.", "Reflector, different from the sender."),
                of("roof", "cellar"),
            ),
            _ if self.is_foreign => text(
                &ForeignPoint::pattern(),
                of(
                    "First point: ipfix:ADDRESS/DOMAIN[/POINT].",
                    "Second point, different from the first.",
                ),
                "ipfix:192.0.2.7/3",
            ),
            _ => text(
                &Point::pattern(),
                of("First point.", "Second point, different from the first."),
                of("roof/eth0", "cellar/eth1"),
            ),
        }
    }
}

/// Schema of a schedule: permanent, once or repeated.
fn schedule(direction: Direction) -> Value {
    let lasting = duration("Duration, of each repetition; at min a second.", "10m", direction);
    let once = json!({
        "type": "object", "additionalProperties": false,
        "properties": { "start": time("Begin."), "until": time("End."), "for": lasting },
    });
    let mut again = once.clone();
    again["properties"]["every"] =
        duration("Repetition interval, not shorter than `for`.", "1h", direction);
    again["required"] = json!(["every", "for"]);
    json!({
        "anyOf": [once, again],
        "description": "When it runs; by default from its creation until it is ended.",
    })
}

/// Text that matches this pattern completely.
fn text(pattern: &str, description: &str, example: &str) -> Value {
    json!({
        "type": "string", "pattern": format!("^{pattern}$"), "description": description, "examples": [example],
    })
}

fn integer(min: u16, max: Option<u16>, default: Option<u16>, description: &str) -> Value {
    let mut integer = json!({ "type": "integer", "minimum": min, "description": description });
    for (key, value) in [("maximum", max), ("default", default)] {
        if let Some(value) = value {
            integer[key] = json!(value);
        }
    }
    integer
}

fn time(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}

/// Durations such as `1h 30m`. Other notations are accepted, too.
fn duration(description: &str, example: &str, direction: Direction) -> Value {
    const COUNT: &str = "[0-9]{1,9}";
    const UNITS: [&str; 6] = ["h", "m", "s", "ms", "µs", "ns"];
    if direction == Direction::Response {
        return json!({ "type": "string", "description": description, "examples": [example] });
    }
    let beginning_with = |index: usize| {
        let shorter = UNITS[index + 1..].iter().map(|unit| format!("( {COUNT}{unit})?"));
        format!("{COUNT}{}{}", UNITS[index], shorter.collect::<String>())
    };
    let shapes: Vec<_> = (0..UNITS.len()).map(beginning_with).collect();
    text(&format!("({})", shapes.join("|")), description, example)
}

#[cfg(test)]
mod tests;
