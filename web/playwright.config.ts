import { defineConfig } from '@playwright/test';

/** Debian's browser. The sandbox does not work for root; only our own page is loaded. */
const launchOptions = {
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
};

export default defineConfig({
  testDir: 'tests',
  // The tests do not measure speed.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 2,
  reporter: 'list',
  use: { launchOptions, timezoneId: 'UTC', locale: 'en-GB', trace: 'retain-on-failure' },
});
