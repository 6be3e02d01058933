/** A hundred paths with a day of results by the second each. */

import type { Page } from '@playwright/test';
import { expect, test } from './controller';

/** Nobody should wait longer, in milliseconds. */
const LONGEST = 2000;

/** Others work on the machine, too: the shortest of these tells how long it takes. */
const TIMES = 3;

async function opens(page: Page, url: string, drawn: () => Promise<void>): Promise<void> {
  const took: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    await page.goto('about:blank');
    const begun = Date.now();
    await page.goto(url);
    await drawn();
    took.push(Date.now() - begun);
  }
  test.info().annotations.push({ type: 'milliseconds', description: took.join(', ') });
  expect(Math.min(...took), `${took.join(', ')} ms`).toBeLessThan(LONGEST);
}

test('the overview of a hundred paths opens at once', async ({ page, hundred }) => {
  await opens(page, hundred.url(), async () => {
    await expect(page.locator('.task polyline')).toHaveCount(102);
    await expect(page.getByRole('link', { name: 'site-0-to-1 passive-delay' })).toContainText('\u202f% lost');
    await expect(page.locator('.map .edge')).toHaveCount(102);
  });
  await page.screenshot({ path: 'screenshots/overview-hundred.png', fullPage: true });
});

test('a day of one of a hundred paths opens at once', async ({ page, hundred }) => {
  await opens(page, hundred.url('#/task/site-4-to-7?last=86400'), async () => {
    await expect(page.locator('.plot canvas')).toHaveCount(6);
    await expect(page.getByRole('img', { name: /^Delays of \d{3},\d{3} packets/ })).toBeVisible();
  });
});
