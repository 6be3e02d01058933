/** What became of every packet, at both points. */

import type { PathResult } from '../api';
import { sum } from '../series';
import { count, share } from '../units';

interface Entry {
  what: string;
  of: (result: PathResult) => number;
  means: string;
}

const AT_FIRST: Entry[] = [
  { what: 'matched', of: (it) => it.matched, means: 'seen at both points' },
  { what: 'lost', of: (it) => it.lost, means: 'left the first point and never came to the second' },
  {
    what: 'given up',
    of: (it) => it.given_up_sent,
    means: 'nobody knows: a probe lost packets or was away. That is nobody\u2019s loss',
  },
  {
    what: 'identical',
    of: (it) => it.identical,
    means: 'could not be told from an earlier packet',
  },
];

const AT_SECOND: Entry[] = [
  { what: 'matched', of: (it) => it.matched, means: 'seen at both points' },
  { what: 'duplicated', of: (it) => it.duplicated, means: 'came again' },
  { what: 'unexpected', of: (it) => it.unexpected, means: 'the first point has not seen it' },
  {
    what: 'given up',
    of: (it) => it.given_up_received,
    means: 'nobody knows where it came from: a probe lost packets or was away',
  },
];

export function Ledger({ results, from, to }: { results: PathResult[]; from: string; to: string }) {
  const [sent, received] = [sum(results, (it) => it.sent), sum(results, (it) => it.received)];
  const reordered = sum(results, (it) => it.reordered);
  return (
    <section class="panel ledger">
      <h2>What became of every packet</h2>
      <div class="accounts">
        <Account title={`Seen at ${from}`} total={sent} entries={AT_FIRST} results={results} />
        <Account title={`Seen at ${to}`} total={received} entries={AT_SECOND} results={results} />
      </div>
      <p class="fine">
        {reordered === 0
          ? 'None of the matched packets was overtaken.'
          : `${count(reordered)} of the matched packets came after one that had left later.`}
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
