// Package browser has a test only. It writes HTML reports as a user may have them, which make test-html opens in headless Chromium:
// test/browser has these tests.
package browser
