// Package browser has tests only: it opens the HTML reports in headless Chromium, by make test-html.
package browser
