/** Flows, as they have fared so far. */

import { MOST_FLOWS, type Flow } from '../api';
import { bitRate, bytes, clock, count, score, share, time } from '../units';

/** Protocols by IANA's numbers. */
const PROTOCOLS: Record<number, string> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6', 132: 'SCTP' };

const TCP = 6;

const end = (address: string, port: number): string => {
  const host = address.includes(':') ? `[${address}]` : address;
  return port === 0 ? address : `${host}:${port}`;
};

const known = (value: number | null | undefined, shown: (value: number) => string): string =>
  value === null || value === undefined ? '\u2013' : shown(value);

export function FlowTable({ flows }: { flows: Flow[] }) {
  return (
    <section class="panel wide">
      <h2>Flows</h2>
      <table>
        <caption>
          {flows.length === MOST_FLOWS && `The newest ${MOST_FLOWS} of them, `}by when their latest packet passed
        </caption>
        <thead>
          <tr>
            <th scope="col">Flow</th>
            <td>packets</td>
            <td>bytes</td>
            <td>rate</td>
            <td>lost</td>
            <td>jitter</td>
            <td>MOS</td>
            <td>last</td>
          </tr>
        </thead>
        <tbody>
          {flows.map((flow) => (
            <Row key={keyOf(flow)} flow={flow} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const keyOf = (flow: Flow): string =>
  [flow.src, flow.sport, flow.dst, flow.dport, flow.protocol, flow.first_ns, flow.ssrc].join(' ');

function Row({ flow }: { flow: Flow }) {
  const kind = flow.ssrc === undefined ? PROTOCOLS[flow.protocol] : `RTP ${flow.codec ?? ''}`;
  // What TCP lost is what was sent again, and was seen.
  const sent = flow.packets + (flow.protocol === TCP ? 0 : (flow.lost ?? 0));
  return (
    <tr>
      <th scope="row">
        {end(flow.src, flow.sport)}{' \u2192 '}
        {end(flow.dst, flow.dport)}
        <small>{kind ?? `protocol ${flow.protocol}`}</small>
      </th>
      <td>{count(flow.packets)}</td>
      <td>{bytes(flow.bytes)}</td>
      <td>{known(flow.throughput_bps, bitRate)}</td>
      <td>{known(flow.lost, (lost) => share(lost / sent))}</td>
      <td>{known(flow.jitter_ms, (ms) => time(ms * 1e6))}</td>
      <td>{known(flow.mos, score)}</td>
      <td>{clock(flow.last_ns / 1e6)}</td>
    </tr>
  );
}
