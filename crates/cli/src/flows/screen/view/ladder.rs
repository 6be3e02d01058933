//! The messages of a SIP call as a ladder: a column for each host, an arrow for each message.

use std::net::SocketAddr;

use wirestamp_metrics::flow::{CallMessage, CallReport};

use super::super::super::calls::{since, with_omitted};

/// Max number of hosts with a column. Messages of further hosts have their addresses instead of an arrow.
const MAX_HOSTS: usize = 4;
/// Width of the time, and distance of two columns, in characters.
const TIME: usize = 10;
const COLUMN: usize = 26;
/// Distance of the first column from the time.
const MARGIN: usize = 12;

/// The lines of a ladder: the hosts, and each message with the time since the first.
pub(super) fn lines(call: &CallReport) -> Vec<String> {
    let mut hosts: Vec<SocketAddr> = Vec::new();
    for host in call.messages.iter().flat_map(|message| [message.src, message.dst]) {
        if !hosts.contains(&host) && hosts.len() < MAX_HOSTS {
            hosts.push(host);
        }
    }
    let messages = with_omitted(call, |message| line(message, call.begin_ns, &hosts));
    std::iter::once(heading(&hosts)).chain(messages).collect()
}

/// The place of a host's column.
fn column(host: usize) -> usize {
    MARGIN + host * COLUMN
}

/// The hosts above their columns.
fn heading(hosts: &[SocketAddr]) -> String {
    let names = hosts.iter().map(|host| {
        let name: String = host.to_string().chars().take(COLUMN - 2).collect();
        format!("{name:^COLUMN$}")
    });
    // The middle of the first name is above the first column.
    let left = " ".repeat(TIME + MARGIN - COLUMN / 2);
    (left + &names.collect::<String>()).trim_end().to_owned()
}

/// A message: its time and its arrow.
fn line(message: &CallMessage, begin_ns: i64, hosts: &[SocketAddr]) -> String {
    let time = since(begin_ns, message.time_ns);
    let place = |host| hosts.iter().position(|it| *it == host);
    match (place(message.src), place(message.dst)) {
        (Some(from), Some(to)) if from != to => {
            format!("{time:>TIME$}{}", arrow(from, to, &message.message, hosts.len()))
        }
        _ => format!("{time:>TIME$}  {} > {}  {}", message.src, message.dst, message.message),
    }
}

/// An arrow from one column to another, with the text on it.
fn arrow(from: usize, to: usize, text: &str, hosts: usize) -> String {
    let (left, right) = (from.min(to), from.max(to));
    // Between the columns, without the head of the arrow and a line at each end of the text.
    let room = (right - left) * COLUMN - 1;
    let text: String = text.chars().take(room.saturating_sub(5)).collect();
    let shaft = format!("{:─^width$}", format!(" {text} "), width = room - 1);
    let shaft = if from < to { format!("{shaft}▶") } else { format!("◀{shaft}") };
    let mut line = String::new();
    let mut host = 0;
    while host < hosts {
        let before = if host == 0 { column(0) } else { COLUMN - 1 };
        line += &" ".repeat(before);
        line.push('│');
        if host == left {
            line += &shaft;
            line.push('│');
            host = right;
        }
        host += 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_between_the_columns_of_their_hosts() {
        let expected = [
            "            │───────── INVITE ────────▶│                         │",
            "            │                         │◀──────── 200 OK ────────│",
            "            │◀────────────────────── BYE ──────────────────────│",
        ];
        let drawn = [arrow(0, 1, "INVITE", 3), arrow(2, 1, "200 OK", 3), arrow(2, 0, "BYE", 3)];
        for (drawn, expected) in drawn.iter().zip(expected) {
            let places = |line: &str| {
                let bars = line.chars().enumerate().filter(|(_, it)| *it == '│');
                bars.map(|(place, _)| place).collect::<Vec<_>>()
            };
            let all: Vec<_> = (0..3).map(column).collect();
            assert!(places(drawn).iter().all(|place| all.contains(place)), "{drawn}");
            assert_eq!(drawn.chars().count(), column(2) + 1, "{drawn}");
            let only = |line: &str| line.replace([' ', '─'], "");
            assert_eq!(only(drawn), only(expected));
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let drawn = arrow(0, 1, &"x".repeat(100), 2);
        assert_eq!(drawn.chars().count(), column(1) + 1);
    }
}
