/** A hundred paths with a day of results by the second each. */

import type { Page } from '@playwright/test';
import { expect, test } from './controller';

/** Max time to open a page, in milliseconds. */
const LONGEST = 2000;

/** On a busy machine: max time as a multiple of the time for an empty page. */
const TIMES_NOTHING = 8;

/** Number of repetitions; the min time counts. */
const TIMES = 3;

async function opens(page: Page, url: string, isDrawn: () => boolean): Promise<number> {
  const took: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    await page.goto('about:blank');
    const begun = Date.now();
    await page.goto(url);
    await page.waitForFunction(isDrawn);
    took.push(Date.now() - begun);
  }
  test.info().annotations.push({ type: 'milliseconds', description: took.join(', ') });
  return Math.min(...took);
}

const nothing = (): boolean => document.querySelector('.empty')?.textContent?.includes('No tasks yet') ?? false;

test('the overview of a hundred paths opens at once', async ({ page, empty, hundred }) => {
  const bound = Math.max(LONGEST, TIMES_NOTHING * (await opens(page, empty.url(), nothing)));
  const took = await opens(page, hundred.url(), () =>
    ['.task polyline', '.map .edge'].every((it) => document.querySelectorAll(it).length === 102),
  );
  expect(took).toBeLessThan(bound);
  await expect(page.getByRole('link', { name: 'site-0-to-1 passive-delay' })).toContainText('\u202f% lost');
  await page.screenshot({ path: 'screenshots/overview-hundred.png', fullPage: true });
});

test('a day of one of a hundred paths opens at once', async ({ page, empty, hundred }) => {
  const bound = Math.max(LONGEST, TIMES_NOTHING * (await opens(page, empty.url(), nothing)));
  const took = await opens(
    page,
    hundred.url('#/task/site-4-to-7?last=86400'),
    () => document.querySelectorAll('.plot canvas').length === 6 && !!document.querySelector('.histogram rect'),
  );
  expect(took).toBeLessThan(bound);
  await expect(page.getByRole('img', { name: /^Delays of \d{3},\d{3} packets/ })).toBeVisible();
});
