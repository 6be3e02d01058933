/** Table of flows. */

import { MAX_FLOWS, type Flow } from '../api';
import { bitRate, bytes, clock, count, score, share, time } from '../units';

/** Protocols by IANA's numbers. */
const PROTOCOLS: Record<number, string> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6', 132: 'SCTP' };

const TCP = 6;

const end = (address: string, port: number): string => {
  const host = address.includes(':') ? `[${address}]` : address;
  return port === 0 ? address : `${host}:${port}`;
};

const ends = (flow: Flow): string => [flow.src, flow.sport, flow.dst, flow.dport, flow.protocol].join(' ');

/** Protocol of a row. Packets of a flow outside its RTP streams, such as RTCP, have a separate row. */
function kindOf(flow: Flow, ofRtp: Set<string>): string {
  if (flow.ssrc !== undefined) return `RTP ${flow.codec ?? ''}`;
  const kind = PROTOCOLS[flow.protocol] ?? `protocol ${flow.protocol}`;
  return ofRtp.has(ends(flow)) ? `${kind}, other than RTP` : kind;
}

const known = (value: number | null | undefined, shown: (value: number) => string): string =>
  value === null || value === undefined ? '\u2013' : shown(value);

export function FlowTable({ flows }: { flows: Flow[] }) {
  const ofRtp = new Set(flows.filter((flow) => flow.ssrc !== undefined).map(ends));
  return (
    <section class="panel wide">
      <h2>Flows</h2>
      <table>
        <caption>
          {flows.length === MAX_FLOWS && `The newest ${MAX_FLOWS}, `}sorted by the time of the last packet
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
            <Row key={keyOf(flow)} flow={flow} kind={kindOf(flow, ofRtp)} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const keyOf = (flow: Flow): string => [ends(flow), flow.first_ns, flow.ssrc].join(' ');

function Row({ flow, kind }: { flow: Flow; kind: string }) {
  // Lost TCP packets were retransmitted, and are included in `packets`.
  const sent = flow.packets + (flow.protocol === TCP ? 0 : (flow.lost ?? 0));
  return (
    <tr>
      <th scope="row">
        {end(flow.src, flow.sport)}{' \u2192 '}
        {end(flow.dst, flow.dport)}
        <small>{kind}</small>
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
