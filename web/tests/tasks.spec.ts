/** Creating and ending tasks; access rights. */

import { request } from '@playwright/test';
import { join } from 'node:path';
import { expect, test } from './controller';

test('an empty page explains how to create a task', async ({ page, empty }) => {
  await page.goto(empty.url());
  await expect(page.getByText('No tasks yet')).toBeVisible();
  await expect(page.getByText('wirestamp pki token NAME')).toBeVisible();
  await page.screenshot({ path: 'screenshots/empty.png' });
  await page.getByRole('link', { name: 'New task' }).click();
  await page.getByLabel('Name').fill('path');
  await page.getByLabel('From').fill('roof/eth0');
  await page.getByLabel('To').fill('cellar');
  await page.getByRole('button', { name: 'Create task' }).click();
  await expect(page.getByRole('alert')).toHaveText(
    'task path: `to` "cellar" is not an observation point: expected PROBE/INTERFACE, such as roof/eth0',
  );
  await page.screenshot({ path: 'screenshots/entry.png', fullPage: true });
  await page.getByLabel('To').fill('cellar/eth1');
  await page.getByLabel('Share').fill('0.5');
  await page.getByRole('button', { name: 'Create task' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('path');
  await expect(page.getByText('sampled share 0.5')).toBeVisible();
  await expect(page.getByText('No results in this time range')).toBeVisible();
  await page.getByRole('button', { name: 'End task' }).click();
  await page.getByRole('button', { name: 'Keep it' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.getByRole('button', { name: 'End task' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await expect(page.locator('.badge')).toContainText('ended');
  await page.getByRole('button', { name: 'Remove task' }).click();
  await expect(page.getByRole('dialog')).toContainText('cannot be restored');
  await page.getByRole('button', { name: 'Keep it' }).click();
  await page.getByRole('button', { name: 'Remove task' }).click();
  await page.getByRole('button', { name: 'Remove it' }).click();
  await expect(page.getByText('No tasks yet')).toBeVisible();
});

test('the form of each measure creates a task', async ({ page, empty }) => {
  for (const [measure, fields] of Object.entries({
    'active-delay': { From: 'roof', To: 'cellar', Rate: '20', Distribution: 'poisson', Authenticated: 'yes', Codec: 'g729a', Every: '1h', For: '5m' },
    volume: { At: 'roof/eth0', Filter: 'udp' },
    traffic: { At: 'roof/eth0', Interval: '5s' },
    flows: { At: 'roof/eth0' },
  })) {
    await page.goto(empty.url('#/new'));
    await page.getByRole('radio', { name: measure }).check();
    await page.getByText('Schedule (default: always)').click();
    await page.getByLabel('Name').fill(measure);
    for (const [label, value] of Object.entries(fields)) {
      const field = page.getByLabel(new RegExp(`^${label}( optional)?$`));
      await (['Distribution', 'Authenticated', 'Codec'].includes(label) ? field.selectOption(value) : field.fill(value));
    }
    await page.getByRole('button', { name: 'Create task' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(measure);
    await page.goto('about:blank');
  }
});

test('a viewer can read everything and change nothing', async ({ browser, day }) => {
  const file = join(day.folder, 'ann.pem');
  day.pki('issue', 'ann', '--role', 'viewer', '-o', file);
  const origin = `https://${day.address}`;
  const certificate = { origin, certPath: file, keyPath: file };
  const context = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates: [certificate] });
  const page = await context.newPage();
  await page.goto(`${origin}/#/task/backbone?last=3600`);
  await expect(page.getByText('viewer ann')).toBeVisible();
  await expect(page.locator('.plot canvas').first()).toBeVisible();
  await expect(page.getByRole('button', { name: 'End task' })).toHaveCount(0);
  await page.goto(`${origin}/#/new`);
  await expect(page.getByText('operators can create tasks')).toBeVisible();
  await context.close();
});

test('foreign origins and host names are rejected', async ({ empty }) => {
  const client = await request.newContext();
  const page = await client.get(empty.url());
  expect(page.headers()['content-security-policy']).toContain("default-src 'none'");
  expect(page.headers()).toMatchObject({
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-cache',
  });
  const etag = page.headers()['etag'] ?? '';
  expect((await client.get(empty.url(), { headers: { 'If-None-Match': etag } })).status()).toBe(304);
  const rebound = await client.get(empty.url('api/v1/tasks'), { headers: { Host: 'evil.example' } });
  expect(rebound.status()).toBe(403);
  const task = { measure: 'volume', at: 'roof/eth0' };
  const put = async (headers: Record<string, string>): Promise<number> =>
    (await client.put(empty.url('api/v1/tasks/v'), { data: JSON.stringify(task), headers })).status();
  const json = { 'Content-Type': 'application/json' };
  expect(await put({ ...json, Origin: 'http://evil.example' })).toBe(403);
  expect(await put({ 'Content-Type': 'text/plain' })).toBe(403);
  expect(await put({ ...json, Origin: empty.url().replace(/\/$/, '') })).toBe(201);
  await client.dispose();
});
