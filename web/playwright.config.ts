import { defineConfig } from '@playwright/test';

/** Debian's browser, without a sandbox, which root cannot have; the page is our own. */
const launchOptions = {
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
};

export default defineConfig({
  testDir: 'tests',
  // Nothing here is about speed.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 2,
  reporter: 'list',
  use: { launchOptions, timezoneId: 'UTC', locale: 'en-GB', trace: 'retain-on-failure' },
});
