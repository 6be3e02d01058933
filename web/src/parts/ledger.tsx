/** Packet counts by outcome, at both points. */

import type { PathResult } from '../api';
import { sum } from '../series';
import { count, share } from '../units';

interface Entry {
  what: string;
  of: (result: PathResult) => number;
  means: string;
}

const AT_FIRST: Entry[] = [
  { what: 'matched', of: (it) => it.matched, means: 'observed at both points' },
  { what: 'lost', of: (it) => it.lost, means: 'observed at the first point, not at the second' },
  {
    what: 'undetermined',
    of: (it) => it.given_up_sent,
    means: 'a probe lost packets or was offline; excluded from loss',
  },
  {
    what: 'identical',
    of: (it) => it.identical,
    means: 'identical to an earlier packet',
  },
];

const AT_SECOND: Entry[] = [
  { what: 'matched', of: (it) => it.matched, means: 'observed at both points' },
  { what: 'duplicated', of: (it) => it.duplicated, means: 'arrived more than once' },
  { what: 'unexpected', of: (it) => it.unexpected, means: 'not observed at the first point' },
  {
    what: 'undetermined',
    of: (it) => it.given_up_received,
    means: 'source unknown: a probe lost packets or was offline',
  },
];

export function Ledger({ results, from, to }: { results: PathResult[]; from: string; to: string }) {
  const [sent, received] = [sum(results, (it) => it.sent), sum(results, (it) => it.received)];
  const reordered = sum(results, (it) => it.reordered);
  return (
    <section class="panel ledger">
      <h2>Packet accounting</h2>
      <div class="accounts">
        <Account title={`Observed at ${from}`} total={sent} entries={AT_FIRST} results={results} />
        <Account title={`Observed at ${to}`} total={received} entries={AT_SECOND} results={results} />
      </div>
      <p class="fine">
        {reordered === 0
          ? 'No matched packets were reordered.'
          : `${count(reordered)} of the matched packets were reordered.`}
      </p>
    </section>
  );
}

interface AccountProps {
  title: string;
  total: number;
  entries: Entry[];
  results: PathResult[];
}

function Account({ title, total, entries, results }: AccountProps) {
  const counts = entries.map((entry) => sum(results, entry.of));
  return (
    <table>
      <caption>{title}</caption>
      <tbody>
        {entries.map((entry, index) => {
          const many = counts[index] ?? 0;
          return (
            <tr key={entry.what} class={many === 0 ? 'none' : ''}>
              <th scope="row">
                {entry.what}
                <small>{entry.means}</small>
              </th>
              <td>{count(many)}</td>
              <td>{total > 0 && many > 0 ? share(many / total) : ''}</td>
            </tr>
          );
        })}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">all</th>
          <td>{count(total)}</td>
          <td />
        </tr>
      </tfoot>
    </table>
  );
}
