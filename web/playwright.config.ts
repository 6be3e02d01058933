import { defineConfig } from '@playwright/test';

/** Debian's browser, without a sandbox, which root cannot have; the page is our own. */
const launchOptions = {
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
};

export default defineConfig({
  testDir: 'tests',
  timeout: 30_000,
  workers: 2,
  reporter: 'list',
  use: { launchOptions, timezoneId: 'UTC', locale: 'en-GB', trace: 'retain-on-failure' },
});
