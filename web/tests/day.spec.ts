/** The page with a day of results. */

import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expect, test } from './controller';

/** Screenshots for people; not compared. */
const shot = (page: Page, name: string): Promise<unknown> =>
  page.screenshot({ path: `screenshots/${name}.png`, fullPage: true });

/** Waits until all charts of a task are drawn. */
async function isDrawn(page: Page): Promise<void> {
  // A day of results per second is 80 MB.
  await expect(page.getByText('Loading')).toHaveCount(0, { timeout: 20_000 });
  await expect(page.locator('.plot canvas').first()).toBeVisible();
}

/** Number of coloured pixels of a chart's canvas. */
const inked = (page: Page, title: string): Promise<number> =>
  page
    .locator('.chart', { has: page.getByRole('heading', { name: title, exact: true }) })
    .locator('canvas')
    .evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((value, index) => index % 4 === 3 && value > 0).length;
    });

test('the overview lists and links every task', async ({ page, day }) => {
  await page.goto(day.url());
  await expect(page.getByRole('status')).toHaveText('live');
  const row = page.getByRole('link', { name: 'backbone passive-delay roof/eth0' });
  await expect(row).toContainText('not connected: roof and cellar');
  await expect(page.getByText('1 ended task')).toBeVisible();
  await expect(page.getByText('No probes yet')).toContainText('wirestamp pki token NAME');
  await shot(page, 'overview-without-probes');
  await row.click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('backbone');
  await expect(page).toHaveTitle(/backbone/);
});

test('a day of seconds is shown and its counts balance', async ({ page, day }) => {
  await page.goto(day.url('#/task/backbone?last=86400'));
  await isDrawn(page);
  await shot(page, 'task-day-light');
  for (const title of ['One-way delay', 'Delay variation', 'Loss', 'Reordering', 'Packets']) {
    expect(await inked(page, title), title).toBeGreaterThan(500);
  }
  expect(await inked(page, 'Call quality with g711 (MOS, 1 to 4.5)')).toBeGreaterThan(500);
  await expect(page.locator('.legend', { hasText: 'p99' }).first()).toContainText(/p99 \d/);
  const histogram = page.getByRole('img', { name: /^Delays of 3\d\d,\d{3} packets, from 8\.\d+\sms/ });
  await expect(histogram).toBeVisible();
  expect(await histogram.locator('rect').count()).toBeGreaterThan(20);
  const figures = page.locator('.figures');
  await expect(figures).toContainText(/mean delay\s*\d+(\.\d+)?\u202fms ± 70\.2\u202fus/);
  const [first, second] = [page.locator('.accounts table').first(), page.locator('.accounts table').last()];
  for (const table of [first, second]) {
    const counts = await table.locator('td:nth-child(2)').allInnerTexts();
    const numbers = counts.map((it) => Number(it.replaceAll(',', '')));
    const all = numbers.pop();
    expect(numbers.reduce((sum, it) => sum + it, 0)).toBe(all);
    expect(all).toBeGreaterThan(340_000);
  }
  await expect(first.getByRole('row', { name: /undetermined/ })).toContainText('excluded from loss');
});

test('dragging zooms in and the back button zooms out', async ({ page, day }) => {
  await page.goto(day.url('#/task/backbone?last=3600'));
  await isDrawn(page);
  const plot = (await page.locator('.plot .u-over').first().boundingBox())!;
  await page.mouse.move(plot.x + plot.width * 0.25, plot.y + 50);
  await page.mouse.down();
  await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 60, { steps: 5 });
  await page.mouse.up();
  await expect(page.locator('.stretch')).toContainText(/\((14|15)\u202fmin/);
  await expect(page).toHaveURL(/from=.*until=/);
  await page.goBack();
  await expect(page.locator('.stretch')).toContainText('to now (1\u202fh)');
});

test('unsynchronised clocks are explained, other results shown', async ({ page, day }) => {
  await page.goto(day.url('#/task/uplink?last=3600'));
  await isDrawn(page);
  await expect(page.getByRole('note')).toContainText('the clock of garden is not synchronised to UTC');
  await expect(page.getByRole('heading', { name: 'Delay above the minimum of each second' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'One-way delay' })).toHaveCount(0);
  await expect(page.getByText('The MOS is not available for')).toContainText('the delay is not known');
  await shot(page, 'task-not-synchronised');
});

test('an ended task shows its last results', async ({ page, day }) => {
  await page.goto(day.url('#/task/ring'));
  await isDrawn(page);
  await expect(page.locator('.badge')).toContainText('ended');
  await expect(page.getByRole('button', { name: 'End task' })).toHaveCount(0);
});

test('shown results are saved as CSV and JSON', async ({ page, day }) => {
  // A fixed range: one that ends now would lose its first result between the two downloads.
  const now = Date.now();
  const [from, until] = [now - 3_600_000, now].map((time) => new Date(time).toISOString());
  await page.goto(day.url(`#/task/backbone?from=${from}&until=${until}`));
  await isDrawn(page);
  const saved = async (kind: string): Promise<string> => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Save ${kind}` }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^backbone-.*Z\.(csv|json)$/);
    return readFileSync(await download.path(), 'utf8');
  };
  const results = JSON.parse(await saved('JSON')) as { begin_ns: number; delay_ns: { mean: number } }[];
  // The last results are of the time when the day was created.
  expect(results.length).toBeGreaterThan(1800);
  const [head, first, ...rest] = (await saved('CSV')).trim().split('\r\n');
  const keys = head?.split(',') ?? [];
  expect(keys).toEqual(expect.arrayContaining(['begin_ns', 'lost', 'delay_ns.p99', 'error_ns']));
  expect(rest.length + 1).toBe(results.length);
  const mean = first?.split(',')[keys.indexOf('delay_ns.mean')];
  expect(Number(mean)).toBe(results[0]?.delay_ns.mean);
});

test('keys do what the help says', async ({ page, day }) => {
  await page.goto(day.url('#/task/backbone?last=86400'));
  await isDrawn(page);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toContainText('zoom in, zoom out');
  await shot(page, 'help');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('2');
  await expect(page.getByRole('button', { name: '1 h' })).toHaveAttribute('aria-pressed', 'true');
  await page.keyboard.press('-');
  await expect(page.locator('.stretch')).toContainText('1\u202fh 30\u202fmin');
  await page.keyboard.press('ArrowLeft');
  await expect(page.locator('.stretch')).not.toContainText('now');
  await page.keyboard.press('2');
  await isDrawn(page);
  const chart = page.getByRole('group', { name: /^Loss over time/ });
  await chart.focus();
  const when = page.locator('.chart', { has: chart }).locator('.when');
  const before = await when.innerText();
  await page.keyboard.press('ArrowLeft');
  await expect(when).not.toHaveText(before);
  await page.keyboard.press('o');
  await expect(page.getByRole('heading', { name: 'Tasks' })).toBeVisible();
});

test('the tab key reaches everything with visible focus', async ({ page, day }) => {
  await page.goto(day.url());
  await expect(page.getByText('1 ended task')).toBeVisible();
  const reached = new Set<string>();
  for (let press = 0; press < 14; press += 1) {
    await page.keyboard.press('Tab');
    const [name, outline] = await page.evaluate(() => {
      const at = document.activeElement!;
      return [at === document.body ? '' : (at.textContent ?? ''), getComputedStyle(at).outlineStyle];
    });
    reached.add(name ?? '');
    if (name) expect(outline, name).not.toBe('none');
  }
  const all = [...reached].join('\n');
  for (const name of ['Wirestamp', 'New task', 'backbone', 'uplink', '1 ended task']) {
    expect(all).toContain(name);
  }
});

test('the theme follows the system or the choice', async ({ page, day }) => {
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(day.url('#/task/backbone?last=3600'));
  await isDrawn(page);
  const dark = await ground();
  await shot(page, 'task-hour-dark');
  await page.keyboard.press('t');
  await expect(page.getByRole('button', { name: 'light', exact: true })).toBeVisible();
  expect(await ground()).not.toBe(dark);
  await page.reload();
  await isDrawn(page);
  expect(await ground()).not.toBe(dark);
  await page.keyboard.press('t');
  expect(await ground()).toBe(dark);
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 375, height: 740 }, isMobile: true, hasTouch: true });

  for (const [name, path] of [
    ['overview', ''],
    ['task', '#/task/backbone?last=3600'],
    ['new', '#/new'],
  ] as const) {
    test(`${name} fits the screen`, async ({ page, day }) => {
      await page.goto(day.url(path));
      await expect(page.getByRole('heading').first()).toBeVisible();
      if (name === 'task') await isDrawn(page);
      // The layout may still change once.
      const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      await expect.poll(widths).toEqual([375, 375]);
      await shot(page, `phone-${name}`);
    });
  }
});
