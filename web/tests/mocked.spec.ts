/** The page with mocked API responses. */

import type { Page } from '@playwright/test';
import { expect, test } from './controller';

const BEGIN = Date.UTC(2026, 0, 1);
const SUMMARY = {
  count: 10,
  min: -5000,
  mean: 2e5,
  stddev: 9e3,
  p50: null,
  p90: null,
  p99: null,
  p999: null,
  max: 6e5,
};
const TASK = { number: 1, name: 'mocked', made: '2026-01-01T00:00:00Z', ended: null };

const result = (index: number): object => ({
  begin_ns: BEGIN * 1e6 + index * 60e9,
  ...{ sent: 100, received: 99, matched: 98, lost: 1, duplicated: 0, reordered: 0, unexpected: 1 },
  ...{ given_up_sent: 1, given_up_received: 0, identical: 0 },
  ...(index === 7 ? { no_mos: 'codec' } : { mos: 4.2 }),
  ...{ delay_ns: SUMMARY, above_minimum_ns: SUMMARY, variation_ns: SUMMARY },
  ...{ error_ns: 40_000, not_synchronised: null, contradicts_the_clocks: index === 3 },
});

/** Mocks the API for one task; returns the URLs of the requests. */
async function mockApi(page: Page, task: object, results: object[], step: number): Promise<string[]> {
  const asked: string[] = [];
  await page.route('**/api/v1/tasks', (route) => route.fulfill({ json: [task] }));
  await page.route('**/api/v1/tasks/mocked/results?*', (route) => {
    asked.push(route.request().url());
    return route.fulfill({ json: { task, results, step_s: step } });
  });
  const buckets = Array.from({ length: 40 }, (_, index) => {
    const [from, until] = [index, index + 1].map((it) => 1000 * 1.2 ** it);
    return { from, until, count: 5000 * Math.exp(-(((index - 15) / 6) ** 2)) };
  });
  await page.route('**/api/v1/tasks/mocked/histogram?*', (route) => route.fulfill({ json: { delay_ns: buckets } }));
  return asked;
}

const DAY = `#/task/mocked?from=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z`;

test('a day is requested in minutes', async ({ page, day }) => {
  const path = { ...TASK, measure: 'passive-delay', from: 'roof/eth0', to: 'cellar/eth1', codec: 'g729' };
  const asked = await mockApi(
    page,
    path,
    Array.from({ length: 1440 }, (_, index) => result(index)),
    60,
  );
  await page.goto(day.url(DAY));
  await expect(page.getByRole('heading', { name: /Call quality with g729.*MOS/ })).toBeVisible();
  await expect(page.getByText('for 0.069\u202f% of this time')).toContainText('published for g729');
  await expect(page.getByRole('note')).toContainText('A clock exceeds its error bound');
  await expect(page.getByRole('img', { name: /^Delays of/ })).toBeVisible();
  await expect(page.locator('.figures')).toContainText('\u22125\u202fus');
  await expect(page.locator('.legend', { hasText: 'sent' })).toContainText('1.67\u202f/s');
  await expect(page.locator('.legend').first()).toContainText('max 600\u202fus');
  expect(asked[0]).toContain('step=60');
  await page.screenshot({ path: 'screenshots/task-mocked.png', fullPage: true });
});

const RETURN_PATH = {
  ...{ answered: 95, lost: 2, undetermined: 1, round_trip_ns: { ...SUMMARY, min: 3e5 }, round_trip_error_ns: 12_000 },
  ...{ delay_ns: SUMMARY, error_ns: 50_000, contradicts_the_clocks: false },
};

test('an active test shows round trips and the return path', async ({ page, day }) => {
  const path = { ...TASK, measure: 'active-delay', from: 'roof', to: 'cellar' };
  const results = Array.from({ length: 1440 }, (_, index) => ({
    ...result(index),
    ...(index < 720 ? { no_return_path: 'not-reported' } : { return_path: RETURN_PATH }),
  }));
  await mockApi(page, path, results, 60);
  await page.goto(day.url(DAY));
  await expect(page.getByRole('heading', { name: 'Round trip' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'One-way delay of the return path' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Loss of the return path' })).toBeVisible();
  await expect(page.getByText('Return path: 68,400 answered')).toContainText('1,440 lost, 720 undetermined');
  await expect(page.getByText('did not report answers')).toContainText('in 50\u202f% of this time');
  await page.screenshot({ path: 'screenshots/task-active.png', fullPage: true });
});

test('a point shows packets and bandwidth', async ({ page, day }) => {
  const point = { ...TASK, measure: 'traffic', at: 'roof/eth0' };
  const results = Array.from({ length: 1440 }, (_, index) => ({
    begin_ns: BEGIN * 1e6 + index * 60e9,
    packets: Math.round(6e6 + 2e6 * Math.sin(index / 100)),
    bytes: Math.round(6e9 + 3e9 * Math.sin(index / 100)),
    missed: index === 700 ? 12 : 0,
    watched_ns: index === 1439 ? 30e9 : 60e9,
  }));
  await mockApi(page, point, results, 60);
  await page.goto(day.url(DAY));
  await expect(page.getByRole('heading', { name: 'Bandwidth' })).toBeVisible();
  await expect(page.locator('.legend', { hasText: 'bits' })).toContainText('2.37\u202fGbit/s');
  await expect(page.locator('.figures')).toContainText('12 not included in these numbers');
  await page.screenshot({ path: 'screenshots/task-traffic.png', fullPage: true });
});

test('flows are shown in a table', async ({ page, day }) => {
  const task = { ...TASK, measure: 'flows', at: 'roof/eth0' };
  const flow = {
    ...{ src: '192.0.2.1', sport: 5004, dst: '192.0.2.2', dport: 5006, protocol: 17 },
    ...{ packets: 990, bytes: 198_000, first_ns: BEGIN * 1e6, last_ns: (BEGIN + 20_000) * 1e6 },
    ...{ throughput_bps: 79_200, lost: 10, ssrc: 7, codec: 'PCMU', jitter_ms: 1.5, mos: 4.1 },
  };
  const plain = { ...flow, src: '2001:db8::1', sport: 443, protocol: 6, lost: null, ssrc: undefined, mos: undefined };
  await mockApi(page, task, [flow, { ...plain, jitter_ms: undefined }], 1);
  await page.goto(day.url(DAY));
  const rows = page.getByRole('row');
  await expect(rows.nth(1)).toContainText('192.0.2.1:5004 \u2192 192.0.2.2:5006');
  await expect(rows.nth(1)).toContainText('RTP PCMU');
  await expect(rows.nth(1)).toContainText('1\u202f%');
  await expect(rows.nth(1)).toContainText('4.10');
  await expect(rows.nth(2)).toContainText('[2001:db8::1]:443');
  await expect(rows.nth(2)).toContainText('TCP');
  await page.screenshot({ path: 'screenshots/task-flows.png', fullPage: true });
});

const CLOCK_SOURCES = [
  { by: 'kernel', source: null, stratum: null, ahead_ns: 0, error_ns: 9000 },
  { by: 'chrony', source: 'GPS', stratum: 1, ahead_ns: 40, error_ns: 12_000 },
];
const FAR = { task: 1, at_ns: 0, ahead_ns: 5e6, bound_ns: 4e5, claimed_ns: [12_000, 30_000], contradicts: true };

test('clock sources and clock errors are shown', async ({ page, day }) => {
  const path = { ...TASK, measure: 'active-delay', from: 'roof', to: 'cellar' };
  await mockApi(page, path, [result(0)], 60);
  const health = {
    ...{ version: '1', clock: 'CLOCK_REALTIME', clock_error_ns: 12_000, processor_time_ns: 1e9, memory_bytes: 1e6 },
    ...{ held_bytes: 0, captures: [], troubles: [], keepers: CLOCK_SOURCES, clock_offsets: [FAR] },
    tests: [{ task: 1, end: 'reflector', forged: 7, too_short: 2, limited: 3 }],
  };
  const since = { address: '192.0.2.1:9', since: TASK.made, heard: TASK.made, until: null };
  const probes = [
    {
      ...{ name: 'cellar', ...since, health: { ...health, clock_offsets: [] } },
      ...{ refused: '192.0.2.7:9', refused_at: new Date().toISOString() },
    },
    { name: 'roof', ...since, health },
  ];
  await page.route('**/api/v1/probes', (route) => route.fulfill({ json: probes }));
  await page.goto(day.url());
  const roof = page.locator('.probe', { hasText: 'roof' }).last();
  await expect(roof).toContainText('chrony, GPS, stratum 1, \u00b1 12\u202fus');
  await expect(roof).toContainText('9 rejected');
  await expect(roof).toContainText('3 not answered');
  await expect(roof).toContainText('differ by 5\u202fms \u00b1 400\u202fus');
  await expect(roof.locator('.badge')).toContainText('exceeds its error bound');
  const cellar = page.locator('.probe', { hasText: 'cellar' }).first();
  await expect(cellar.locator('.badge')).toContainText('another probe has the same certificate');
  await expect(cellar).toContainText('Another probe with this certificate was refused at');
  await expect(cellar).toContainText('from 192.0.2.7:9');
  await page.screenshot({ path: 'screenshots/clocks.png', fullPage: true });
  await page.goto(day.url(DAY));
  await expect(page.getByRole('note')).toContainText('the clocks of roof and cellar differ by 5\u202fms');
});

test('collectors in trouble and paths with loss are shown', async ({ page, day }) => {
  const path = { ...TASK, measure: 'passive-delay', from: 'roof/eth0', to: 'cellar/eth1' };
  const tasks = ['away', 'good', 'lossy'].map((name, index) => ({ ...path, number: index + 1, name }));
  const since = { address: '192.0.2.1:9', since: TASK.made, heard: TASK.made, until: null, health: null };
  const now = Date.now();
  const second = (lost: number) => ({ begin_ns: (now - 5000) * 1e6, matched: 1000 - lost, lost, delay_mean_ns: 1e6 });
  await page.route('**/api/v1/tasks', (route) => route.fulfill({ json: tasks }));
  await page.route('**/api/v1/probes', (route) =>
    route.fulfill({ json: ['roof', 'cellar'].map((name) => ({ name, ...since })) }),
  );
  await page.route('**/api/v1/results?*', (route) =>
    route.fulfill({
      json: {
        results: { 2: [second(0)], 3: [second(108)] },
        not_answered: ['cannot read results from the collector store: it does not answer'],
        without_results: [1],
        cannot_store: ['the controller cannot store results: the disk is full'],
      },
    }),
  );
  await page.goto(day.url());
  await expect(page.getByRole('alert').first()).toContainText('the collector store: it does not answer');
  await expect(page.getByRole('alert').last()).toContainText('the disk is full');
  const badge = (name: string) => page.locator('.task', { hasText: name }).locator('.badge');
  await expect(badge('away')).toHaveText(/results not available/);
  await expect(badge('good')).toHaveClass('badge good');
  await expect(badge('lossy')).toHaveText(/10\.8\u202f% lost/);
  await expect(badge('lossy')).toHaveClass('badge bad');
  await page.screenshot({ path: 'screenshots/troubles.png', fullPage: true });
});

test('a collector that is away is named on the page of its former task', async ({ page, day }) => {
  const path = { ...TASK, measure: 'passive-delay', from: 'roof/eth0', to: 'cellar/eth1', shards: 4 };
  const results = [0, 1, 2, 3].map((index) => ({ ...result(index), ...(index === 1 && { counts_are_bounds: true }) }));
  await mockApi(page, path, results, 60);
  const partial = [{ collector: 'store', until_ns: BEGIN * 1e6 }];
  await page.route('**/api/v1/tasks/mocked/results?*', (route) =>
    route.fulfill({ json: { task: path, results, step_s: 60, partial } }),
  );
  await page.goto(day.url(DAY));
  await expect(page.getByText('no answer from the collector store')).toBeVisible();
  await expect(page.getByText('4 shards')).toBeVisible();
  await expect(page.getByText('lower bounds for 25\u202f% of this time')).toBeVisible();
  await expect(page.getByRole('img', { name: /^Delays of/ })).toBeVisible();
});
