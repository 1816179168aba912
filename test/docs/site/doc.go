// Package site has tests only: it opens the documentation that make docs builds in headless Chromium, by make test-docs.
package site
