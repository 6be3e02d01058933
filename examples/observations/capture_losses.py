"""Packets that a capture may have missed: the rule of Wirestamp's correlator, for both examples.

A packet that was observed at one point only is not lost (or unexpected) but undetermined, if the capture at the other
point lost it. A capture loss states an interval and a number of packets. The packets nearest to the interval are assigned
to it, as many as it has. The rule is documented at `Correlator::missed` in crates/metrics/src/correlator. It needs the
order of the packets, so it is no query. Only packets without a match are read here.
"""

from bisect import bisect_left, insort

TIMEOUT = 1_000_000_000
SKEW = 100_000_000
BEGINNING = -(2**63)


class Interval:
    """An interval in which a capture lost packets. `open`: no packet of it passed earlier."""

    def __init__(self, begin, until, packets, opened):
        self.begin, self.until, self.packets, self.open = begin, until, packets, opened


def intervals(losses):
    """Intervals of a point in the order of reports, from (begin, until, packets, delivered until)."""
    result = []
    for begin, until, packets, delivered in losses:
        opened = max(begin, BEGINNING if delivered is None else delivered)
        if result:
            opened, until = max(opened, result[-1].open), max(until, result[-1].until)
        result.append(Interval(begin, max(until, opened), packets, opened))
    return result


class Suspect:
    """A packet that may have passed uncaptured: `key`, its latest possible predecessor at the point, and a count."""

    def __init__(self, key, number, packet, time, following):
        self.key, self.number, self.packet = key, number, packet
        self.time, self.following = time, following

    def __lt__(self, other):
        return (self.key, self.number) < (other.key, other.number)


def undetermined(losses, packets, before, after):
    """The packets that are undetermined.

    losses: capture losses of the point that did not capture them. packets: those without a match, in order, as
    (packet, place, latest, following): its place at its own point, the latest place at the other point of a matched
    packet before it, and the next later one. before, after: how much earlier and later a packet may pass the point.
    """
    coming, current, suspects, found = intervals(losses), [], [], set()

    def possible(time, interval, opened):
        return time - before <= interval.until and time + after >= opened

    def settle(classified):
        while current and (classified is None or current[0].until + before < classified):
            for suspect in nearest(current[0]):
                suspects.remove(suspect)
                found.add(suspect.packet)
            current.pop(0)
        while suspects and not (current and current[0].open <= suspects[0].time + after):
            suspects.pop(0)

    def nearest(interval):
        begin = interval.begin
        at = bisect_left([it.key for it in suspects], begin)
        while at > 0:
            suspect = suspects[at - 1]
            if suspect.following is not None and suspect.following <= interval.begin:
                break
            at, begin = at - 1, suspect.key
        start = bisect_left([it.key for it in suspects], begin)
        behind = [it for it in suspects[start:] if possible(it.time, interval, interval.open)]
        ahead = [it for it in suspects[:start] if possible(it.time, interval, interval.open)]
        # The nearest place first; at one place, the packet that passed first.
        ahead.sort(key=lambda it: (-it.key, it.number))
        chosen = []
        while len(chosen) < interval.packets and (ahead or behind):
            if ahead and (not behind or is_nearer(ahead[0].key, behind[0].key, interval)):
                chosen.append(ahead.pop(0))
            else:
                chosen.append(behind.pop(0))
        return chosen

    for number, (packet, time, latest, following) in enumerate(packets):
        while coming and coming[0].open <= time + after:
            current.append(coming.pop(0))
        if not current:
            continue
        settle(time)
        if current and possible(time, current[-1], current[0].open):
            insort(suspects, Suspect(time if latest is None else latest, number, packet, time, following))
    current.extend(coming)
    settle(None)
    return found


def is_nearer(ahead, behind, interval):
    """Whether a place ahead is no further from the begin than one behind from the end."""
    return behind >= interval.until and interval.begin - ahead <= behind - interval.until
