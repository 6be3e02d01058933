/** Live results of real probes and real packets. */

import { createSocket } from 'node:dgram';
import { expect, test } from './controller';

/** A port without a listener: packets pass the loopback interface anyway. */
const PORT = 47_470;

/** Probes report their health every ten seconds. */
const REPORTED = { timeout: 20_000 };

test('delays of real packets appear without reload', async ({ page, empty }) => {
  test.skip(process.getuid?.() !== 0 && process.env['WIRESTAMP_NO_SKIP'] !== '1', 'skipped: needs root');
  await page.goto(empty.url());
  await expect(page.getByText('No probes yet')).toBeVisible();
  await empty.probe('roof');
  await empty.probe('cellar');
  await expect(page.locator('.probe')).toHaveCount(2);
  const task = { measure: 'passive-delay', from: 'roof/lo', to: 'cellar/lo', filter: `udp dst port ${PORT}` };
  await page.request.put(empty.url('api/v1/tasks/path'), { data: task });
  const sender = createSocket('udp4');
  const timer = setInterval(() => sender.send('x'.repeat(100), PORT, '127.0.0.1'), 20);
  try {
    const row = page.getByRole('link', { name: /^path passive-delay/ });
    await expect(row).toContainText('measuring', REPORTED);
    await expect(row.locator('.latest')).toContainText(/\d.*±.*0\u202f% lost/);
    await expect(row.locator('polyline')).toHaveCount(1);
    await expect(page.locator('.probe').first()).toContainText(/lo.*packets/s, REPORTED);
    await page.screenshot({ path: 'screenshots/overview-live.png', fullPage: true });
    await row.click();
    const matched = page.locator('.accounts table').first().locator('td').first();
    await expect(matched).not.toHaveText('0');
    const before = await matched.innerText();
    await expect(matched).not.toHaveText(before);
    await page.screenshot({ path: 'screenshots/task-live.png', fullPage: true });
  } finally {
    clearInterval(timer);
    sender.close();
  }
});

test('an unreachable controller is reported and reconnected', async ({ page, empty }) => {
  await page.goto(empty.url());
  await expect(page.getByRole('status')).toHaveText('live');
  await empty.stop();
  await expect(page.getByRole('alert')).toContainText('the controller does not answer');
  await empty.start();
  await expect(page.getByRole('status')).toHaveText('live', { timeout: 20_000 });
  await expect(page.getByRole('alert')).toHaveCount(0);
});
