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
  const rows = crds.locator('tbody tr').filter({ visible: true });
  const search = page.locator('#search-crds');
  await expect(rows).toHaveCount(303);

  await page.keyboard.press('/');
  await expect(page.locator('#search-clusters'), 'the key / focuses the first search').toBeFocused();
  await search.focus();
  await page.keyboard.type('kind007');
  await expect(rows).toHaveCount(1);
  await expect(page.locator('output[for=search-crds]'), 'what a screen reader reads').toHaveText('1 of 303 rows');

  await page.keyboard.press('Tab'); // to the region of the table
  await page.keyboard.press('Tab'); // to the blocker in it
  await expect(rows.locator('summary')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(crds.locator('details[open] code').filter({ hasText: 'kubectl patch crd kind007.' })).toBeVisible();
  await crds.evaluate((e) => e.scrollIntoView());
  await picture(page, 'plan-search');

  await search.focus();
  await page.keyboard.press('Escape');
  await expect(rows, 'Escape ends the search').toHaveCount(303);
});

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
