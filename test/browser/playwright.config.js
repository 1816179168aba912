// Tests of pages in headless Chromium. tools/browser/test.sh installs what they need, and runs one of the projects.
const { defineConfig } = require('@playwright/test');

module.exports = defineConfig({
  outputDir: '../../bin/playwright',
  reporter: 'list',
  forbidOnly: true,
  fullyParallel: true,
  expect: { timeout: 10_000 }, // a busy machine needs more than the 5 s of Playwright
  use: {
    actionTimeout: 10_000,
    navigationTimeout: 60_000,
    // Pages are files: what they would load from a network fails.
    offline: true,
    launchOptions: { executablePath: process.env.CHROMIUM, args: ['--disable-dev-shm-usage', '--disable-gpu'] },
  },
  projects: [
    // Plans and reports that godwit writes, as cmd/internal/browser makes them.
    { name: 'reports', testMatch: 'reports.spec.js', timeout: 2 * 60_000, use: { viewport: { width: 1280, height: 900 } } },
    // The documentation that tools/docs/build.sh has built.
    { name: 'site', testMatch: 'site.spec.js', timeout: 15 * 60_000, use: { viewport: { width: 1440, height: 900 } } },
  ],
});
