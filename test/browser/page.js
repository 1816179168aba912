// What the tests of all pages need.
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { expect } = require('@playwright/test');

// telephone is the size of the window of a telephone.
const telephone = { width: 390, height: 844 };

// axeRules is how many rules a page with content follows at least. axe-core has not read a page that follows fewer.
const axeRules = 10;

const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// open opens a file.
async function open(page, file) {
  await page.goto(pathToFileURL(path.resolve(file)).href);
}

// picture writes a screenshot of the window, if make has SCREENSHOTS.
async function picture(page, name) {
  if (process.env.SCREENSHOTS) {
    await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
  }
}

// overflow is by how many pixels the page is wider than the window.
function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

// requested collects the URLs that a page requests from now on, that of the page among them.
function requested(page) {
  const urls = [];
  page.on('request', (request) => urls.push(request.url()));
  return urls;
}

// expectAccessible fails if axe-core finds a violation of one of these impacts, or of any impact without them.
async function expectAccessible(page, what, ...impacts) {
  await page.evaluate(axeSource); // not in a script element, which the policy of the page forbids
  const { passes, violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  expect(passes.length, `${what}: rules that the page follows`).toBeGreaterThanOrEqual(axeRules);
  const found = violations.filter((v) => impacts.length === 0 || impacts.includes(v.impact));
  const texts = found.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.html.slice(0, 200)} ${n.failureSummary}`).slice(0, 3).join(' | ')}`);
  expect.soft(texts, `${what}: violations that axe-core finds`).toEqual([]);
}

module.exports = { telephone, open, picture, overflow, requested, expectAccessible };
