// Plans and reports as a user opens them: search, keyboard, colours, policy, accessibility.
const path = require('node:path');
const { test, expect } = require('@playwright/test');
const { telephone, open, picture, overflow, requested, expectAccessible } = require('./page.js');

// file is one of the pages that cmd/internal/browser writes.
const file = (name) => path.join(process.env.GODWIT_REPORTS, `${name}.html`);
const reports = ['plan', 'report'];

test('a user finds a CRD with the keyboard alone', async ({ page }) => {
  await open(page, file('plan'));
  const crds = page.locator('section[aria-labelledby=crds]');
  const rows = crds.locator('tbody tr:not(.next)').filter({ visible: true });
  const search = page.locator('#search');
  await expect(rows).toHaveCount(303);

  await page.keyboard.press('/');
  await expect(search, 'the key / focuses the search').toBeFocused();
  await page.keyboard.type('kind007');
  await expect(rows).toHaveCount(1);
  await expect(page.locator('output[for=search]'), 'what a screen reader reads: that row, and the row of its cluster').toHaveText('2 of 311 rows');
  await expect(page.locator('#revisions'), 'a table without a row that the search finds').toBeHidden();

  for (let i = 0; i < 8 && !(await rows.locator('summary:focus').count()); i++) {
    await page.keyboard.press('Tab'); // through the row of the cluster and the region of the table
  }
  await expect(rows.locator('summary'), 'the blocker').toBeFocused();
  await page.keyboard.press('Enter');
  await expect(crds.locator('details[open] code').filter({ hasText: 'kubectl patch crd kind007.' })).toBeVisible();
  await crds.evaluate((e) => e.scrollIntoView());
  await picture(page, 'plan-search');

  await search.focus();
  await page.keyboard.press('Escape');
  await expect(rows, 'Escape ends the search').toHaveCount(303);
});

for (const clipboard of ['the clipboard', 'no clipboard, as on a page without TLS']) {
  test(`a button copies a command whole, with ${clipboard}`, async ({ page }) => {
    await page.addInitScript((has) => {
      Object.defineProperty(navigator, 'clipboard', { value: has ? { writeText: async (text) => { window.copied = text; } } : undefined });
      document.addEventListener('copy', (event) => { window.copied = event.target.value; });
    }, clipboard === 'the clipboard');
    await open(page, file('plan'));
    const next = page.locator('section[aria-labelledby=clusters] .next').filter({ hasText: 'godwit revision run' });
    await next.getByRole('button', { name: 'Copy godwit revision run' }).click();
    await expect(next.getByRole('button')).toHaveText('Copied');
    expect(await page.evaluate(() => window.copied)).toBe('godwit revision run --all-namespaces --context=east');
  });
}

test('a command for many rows stands once', async ({ page }) => {
  await open(page, file('plan'));
  for (const section of await page.locator('section.table').all()) {
    const commands = await section.locator('.next code').allTextContents();
    expect.soft(commands.length).toBe(new Set(commands).size);
  }
});

test('Unknown has another colour than Blocked, in tables and tiles', async ({ page }) => {
  await open(page, file('plan'));
  const colour = (text) => page.locator('td > span', { hasText: text }).first().evaluate((e) => getComputedStyle(e).color);
  expect(await colour('Unknown')).not.toBe(await colour('Blocked'));
  const edge = (text) => page.locator('.tile', { hasText: text }).evaluate((e) => getComputedStyle(e).borderLeftColor);
  expect(await edge('domains unknown')).not.toBe(await edge('domains blocked'));
});

// brokenWords are the words of the tables and tiles that are on two lines. A long name may break at its separators.
function brokenWords(page) {
  return page.evaluate(() => {
    const found = [];
    for (const element of document.querySelectorAll('.tile, tbody:nth-of-type(-n+20) > tr:nth-child(-n+20)')) {
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        for (const word of texts.currentNode.data.matchAll(/[^\s./:@_,-]{2,40}/g)) {
          const range = document.createRange();
          range.setStart(texts.currentNode, word.index);
          range.setEnd(texts.currentNode, word.index + word[0].length);
          const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
          if (lines.size > 1) {
            found.push(word[0]);
          }
        }
      }
    }
    return found;
  });
}

for (const width of [telephone.width, 800, 1000, 1400]) {
  for (const name of reports) {
    test(`${name} breaks no word and scrolls no table sideways, ${width} pixels wide`, async ({ page }) => {
      await page.setViewportSize({ width, height: 900 });
      await open(page, file(name));
      await page.locator('details').evaluateAll((all) => all.forEach((d, i) => { d.open = i < 20; }));
      await picture(page, `${name}-${width}`);
      expect.soft(await brokenWords(page)).toEqual([]);
      const wider = await page.locator('.scroll').evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 60)));
      expect.soft(wider, 'tables that scroll sideways').toEqual([]);
      const states = page.locator('td:not(.none) .unsure, td:not(.none) .bad, td:not(.none) .good').filter({ visible: true });
      expect.soft(await states.count(), 'states that are seen').toBeGreaterThanOrEqual(3);
    });
  }
}

test('the first key skips the navigation, and the focus is visible', async ({ page }) => {
  await open(page, file('plan'));
  await page.keyboard.press('Tab');
  await expect(page.locator('.skip')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('#main')).toBeFocused();
  for (let i = 0; i < 10; i++) { // the page has more elements than these
    await page.keyboard.press('Tab');
    await expect.soft(page.locator(':focus')).not.toHaveCSS('outline-style', 'none');
  }
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });
  for (const name of reports) {
    test(`${name} has all rows and no search`, async ({ page }) => {
      await open(page, file(name));
      expect(await page.locator('tbody tr').count()).toBeGreaterThanOrEqual(5);
      await expect(page.locator('input').filter({ visible: true })).toHaveCount(0);
    });
  }
});

for (const name of reports) {
  test(`${name} runs no other script and makes no request`, async ({ page }) => {
    const urls = requested(page);
    await open(page, file(name));
    const foreign = await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.foreign = 1';
      document.body.append(script);
      return window.foreign;
    });
    expect(foreign, 'the policy refuses the script').toBeUndefined();
    await expect(page.locator('.tile').first(), 'the policy allows the style of the page').toHaveCSS('border-left-width', '6px');
    expect(urls).toEqual([page.url()]);
  });
}

for (const [look, use] of Object.entries({ light: {}, dark: { colorScheme: 'dark' }, narrow: { viewport: telephone } })) {
  test.describe(look, () => {
    test.use(use);
    for (const name of reports) {
      test(`${name} fits, and axe-core finds nothing`, async ({ page }) => {
        await open(page, file(name));
        await picture(page, `${name}-${look}`);
        expect.soft(await overflow(page), 'pixels that the page is wider than the window').toBeLessThanOrEqual(0);
        const cut = await page.locator('.tile').evaluateAll((tiles) => tiles.filter((t) => t.scrollWidth > t.clientWidth).map((t) => t.textContent));
        expect.soft(cut, 'tiles whose text is cut').toEqual([]);
        await page.locator('details').evaluateAll((all) => all.forEach((d, i) => { d.open = i < 20; }));
        await picture(page, `${name}-${look}-open`);
        await expectAccessible(page, name);
      });
    }
  });
}
