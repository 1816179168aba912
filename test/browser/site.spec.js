// The documentation as a reader opens it: on a telephone, by search and keyboard, in each version and colour.
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { test, expect } = require('@playwright/test');
const { telephone, open, picture, overflow, requested, expectAccessible } = require('./page.js');

const repository = path.resolve(__dirname, '../..');
const built = path.join(repository, 'bin/site/main');

// mainPages are the pages that a reader is most likely to open, and those with tables, code and diagrams.
const mainPages = [
  'index.html', 'guides/quick-start.html', 'guides/index.html', 'guides/drop-an-api-version.html', 'guides/embed.html', 'tutorials/drop-an-api-version.html', 'tutorials/index.html',
  'errors/index.html', 'errors/must-remain-in-spec-versions.html', 'coming-from/cmctl.html', 'reference/cli.html', 'reference/commands/crd-run.html', 'reference/events.html', 'reference/hub-protocol.html', 'reference/chart.html', 'reference/surface.html',
  'explanation/architecture.html', 'adr/index.html', 'adr/0015-old-revisions.html', 'project/changelog.html',
];

// pages are the paths of all pages.
function pages() {
  const found = fs.readdirSync(built, { recursive: true }).filter((f) => f.endsWith('.html'));
  expect(found.length).toBeGreaterThanOrEqual(100);
  return found;
}

// settled waits until nothing moves, because a colour in a transition has another contrast.
async function settled(page) {
  await page.waitForTimeout(100);
  await page.evaluate(() => Promise.race([
    new Promise((resolve) => { setTimeout(resolve, 2000); }),
    Promise.allSettled(document.getAnimations().map((a) => a.finished)),
  ]).then(() => undefined));
}

// isForeign says whether a URL is outside the site.
function isForeign(url) {
  const site = pathToFileURL(path.dirname(built)).href + '/';
  return !url.startsWith(site) && !/^(data:|blob:|about:(blank|srcdoc)$)/.test(url);
}

// loads finds what a page or a style loads by itself: scripts, styles, fonts, images, frames. A reader follows a link.
const loads = /<(?:script|img|iframe|source|video|audio|embed|object|link)\b[^>]*?\b(?:src|srcset|data|href)=["']?([^"'\s>]+)|url\(["']?([^"')]+)|@import\s+["']([^"']+)/gi;

test('no page and no style names another host', () => {
  const styles = fs.readdirSync(path.join(built, 'assets/stylesheets')).filter((f) => f.endsWith('.css'));
  expect(styles.length).toBeGreaterThanOrEqual(3);
  for (const file of [...pages(), ...styles.map((s) => `assets/stylesheets/${s}`)]) {
    for (const [, ...to] of fs.readFileSync(path.join(built, file), 'utf8').matchAll(loads)) {
      expect.soft(new URL(to.join(''), 'file:///').host, `${file} loads ${to.join('')}`).toBe('');
    }
  }
});

// The theme asks the host of the repository for stars and releases, some time after the page has loaded.
test('the link to the repository requests nothing', async ({ page }) => {
  const urls = requested(page);
  await open(page, path.join(built, 'index.html'));
  await expect(page.locator('a.md-source').first()).toBeAttached();
  await page.waitForLoadState('networkidle');
  expect(urls.filter(isForeign)).toEqual([]);
});

test.describe('on a telephone', () => {
  test.use({ viewport: telephone });
  test('each page fits, and requests nothing from another host', async ({ page }) => {
    const urls = requested(page);
    for (const file of pages()) {
      urls.length = 0;
      await open(page, path.join(built, file));
      expect.soft(await overflow(page), `pixels that ${file} is wider than the window`).toBeLessThanOrEqual(0);
      // What is beyond the window, and has no ancestor that scrolls.
      const hidden = await page.locator('.md-content *').evaluateAll((all) => all.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 &&
        !e.closest('pre, .md-typeset__scrollwrap, .md-typeset__table, .highlight, .mermaid, .md-clipboard, [hidden]')).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)));
      expect.soft(hidden, `${file} has content beyond the window`).toEqual([]);
      expect.soft(urls.filter(isForeign), `${file} requests`).toEqual([]);
    }
  });
});

test('a reader finds a page with the keyboard alone', async ({ page }) => {
  await open(page, path.join(built, 'index.html'));
  await page.keyboard.press('/');
  await expect(page.locator('.md-search__input')).toBeFocused();
  await page.keyboard.type('encryption key');
  await expect(page.locator('.md-search-result__link[href*="/guides/rotate-an-encryption-key.html"]').first()).toBeAttached();
  await settled(page);
  await picture(page, 'search-wide');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/encryption-key/);
  await expect(page.locator('mark, h1').first()).toBeAttached();
});

// messages are what a user pastes into the search, as the API server, kubectl, Helm and KubeVirt print it, by the page that it finds.
const messages = {
  'must-remain-in-spec-versions': ['status.storedVersions[0]: Invalid value: "v1"', 'missing from spec.versions', 'must remain in spec.versions until a storage migration'],
  'convert-from-an-invalid-version': ['request to convert CR from an invalid group/version', 'request to convert CR from an invalid group/version: example.com/v1'],
  'convert-to-an-invalid-version': ['request to convert CR to an invalid group/version'],
  'field-not-declared-in-schema': ['failed to convert new object', 'field not declared in schema'],
  'unable-to-build-kubernetes-objects': ['unable to build kubernetes objects from current release manifest'],
  'no-matches-for-kind': ['no matches for kind'],
  'server-could-not-find-the-requested-resource': ['the server could not find the requested resource'],
  'conversion-webhook-failed': ['conversion webhook for', 'conversion webhook no endpoints', 'no endpoints available for service'],
  'failed-find-instancetype': ['FailedFindInstancetype', 'failed to decode object in ControllerRevision'],
};

test('the first words of an error message find its page first', async ({ page }) => {
  const found = fs.readdirSync(path.join(repository, 'docs/errors')).map((f) => f.replace('.md', '')).filter((f) => f !== 'README');
  expect(found.sort(), 'pages about error messages').toEqual(Object.keys(messages).sort());
  for (const [file, typed] of Object.entries(messages)) {
    for (const words of typed) {
      await open(page, path.join(built, 'index.html'));
      await page.locator('.md-search__input').fill(words);
      // The search knows no "from" and "to", which alone tell two messages apart: each of their pages begins with a link to the other.
      const pages = file === 'convert-to-an-invalid-version' ? 'convert-(from|to)-an-invalid-version' : file;
      await expect.soft(page.locator('.md-search-result__link').first(), `the first result of: ${words}`).toHaveAttribute('href', new RegExp(`/errors/${pages}\\.html`));
    }
  }
});

test('the button of a block with prompts copies its commands alone', async ({ page }) => {
  await open(page, path.join(built, 'tutorials/drop-an-api-version.html'));
  for (const [part, copied] of [
    ['STORED   OBJECTS', 'godwit crd plan backups.example.com\necho $?'],
    ['--max-writes-per-second=1', 'godwit crd run backups.example.com --yes --as=system:serviceaccount:ops:migrator \\\n    --max-in-flight=4 --max-writes-per-second=1 --timeout=80s\necho $?'],
  ]) {
    const block = page.locator('.language-console').filter({ hasText: part }).first();
    await block.hover();
    const button = block.locator('[data-clipboard-target]');
    await button.click();
    await expect.soft(button).toHaveAttribute('data-clipboard-text', copied);
  }
});

// searches are what a user types, by the page that is the first result.
const searches = {
  'godwit crd run': 'reference/commands/crd-run',
  'godwit revision rollback': 'reference/commands/revision-rollback',
  'quick start': 'guides/quick-start',
  'coming from kube-storage-version-migrator': 'coming-from/kube-storage-version-migrator',
  'coming from storageversionmigration': 'coming-from/storageversionmigration',
  'mapkubeapis': 'coming-from/mapkubeapis',
  'cmctl upgrade': 'coming-from/cmctl',
};

test('the search finds a command, the quick start and the tool that a user comes from', async ({ page }) => {
  for (const [words, file] of Object.entries(searches)) {
    await open(page, path.join(built, 'index.html'));
    await page.locator('.md-search__input').fill(words);
    await expect.soft(page.locator('.md-search-result__link').first(), `the first result of: ${words}`).toHaveAttribute('href', new RegExp(`/${file}\\.html`));
  }
});

test('the search finds no decision', async () => {
  const index = fs.readFileSync(path.join(built, 'search/search_index.js'), 'utf8');
  expect(index).toContain('reference/commands/crd-run.html');
  expect(index).not.toMatch(/"location":"adr\//);
});

for (const [colorScheme, scheme] of [['light', 'default'], ['dark', 'slate']]) {
  test.describe(`in ${colorScheme} colours`, () => {
    test.use({ colorScheme });
    test('a page has the colours of the system', async ({ page }) => {
      await open(page, path.join(built, 'guides/embed.html'));
      await expect(page.locator('body')).toHaveAttribute('data-md-color-scheme', scheme);
    });
  });
}

test('a reader chooses colours with the keyboard, and the next page keeps them', async ({ page }) => {
  await open(page, path.join(built, 'guides/embed.html'));
  const palette = page.locator('[name=__palette]:focus');
  for (let i = 0; i < 30 && await palette.count() === 0; i++) {
    await page.keyboard.press('Tab');
  }
  await expect(palette, 'Tab leads to the choice of colours').toHaveCount(1);
  await page.keyboard.press('ArrowRight'); // from the colours of the system to light
  await page.keyboard.press('ArrowRight'); // and to dark
  await expect(page.locator('body')).toHaveAttribute('data-md-color-scheme', 'slate');
  await open(page, path.join(built, 'index.html'));
  await expect(page.locator('body')).toHaveAttribute('data-md-color-scheme', 'slate');
});

test('the first key skips the navigation, and the focus is visible', async ({ page }) => {
  const guides = path.join(built, 'guides/index.html');
  await open(page, guides);
  await page.keyboard.press('Tab');
  await expect(page.locator('.md-skip')).toBeFocused();
  await page.keyboard.press('Enter');
  await page.waitForURL(/#./);
  await open(page, guides);
  const focused = new Set();
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab');
    const { element, visible } = await page.evaluate(() => {
      const e = document.activeElement;
      const outlined = (x) => x && getComputedStyle(x).outlineStyle !== 'none';
      // The label after a field has its outline. The search has a cursor.
      return { element: e.outerHTML.slice(0, 300), visible: outlined(e) || outlined(e.nextElementSibling) || e.matches('.md-search__input, body, .md-toggle') };
    });
    expect.soft(visible, `the focus is visible on ${element}`).toBeTruthy();
    focused.add(element);
  }
  expect(focused.size, 'elements that Tab leads to').toBeGreaterThanOrEqual(20);
});

test('a reader of a release chooses another version of the page', async ({ page }, info) => {
  const site = info.outputPath('site');
  for (const version of ['main', 'v0.9.0', 'v0.10.0', 'v0.11.0-rc.1']) {
    fs.cpSync(built, path.join(site, version), { recursive: true });
  }
  // A build for a release writes its name into each page.
  const released = path.join(site, 'v0.9.0/guides/embed.html');
  fs.writeFileSync(released, fs.readFileSync(released, 'utf8').replace('name="godwit-version" content="main"', 'name="godwit-version" content="v0.9.0"'));
  execFileSync(path.join(repository, 'bin/mkdocs/bin/python'), [path.join(repository, 'tools/docs/versions.py'), site]);

  await open(page, path.join(site, 'index.html'));
  await page.waitForURL('**/v0.10.0/index.html'); // the newest release
  await open(page, path.join(site, 'main/guides/embed.html'));
  const versions = page.locator('select.godwit-version');
  await expect(versions.locator('option')).toHaveText(['v0.11.0-rc.1', 'v0.10.0', 'v0.9.0', 'main']);
  await expect(versions).toHaveValue('main');
  await picture(page, 'versions-wide');
  await versions.selectOption('v0.9.0');
  await page.waitForURL('**/v0.9.0/guides/embed.html');
  await expect(versions).toHaveValue('v0.9.0');

  await page.setViewportSize(telephone);
  expect(await overflow(page), 'pixels that a page with a selector is wider than a telephone').toBeLessThanOrEqual(0);
  const right = await page.locator('.md-header__inner > *').evaluateAll((all) => Math.max(...all.map((e) => e.getBoundingClientRect().right)));
  expect(Math.ceil(right), 'where the header ends').toBeLessThanOrEqual(telephone.width);
  await picture(page, 'versions-narrow');
});

test('mermaid draws a diagram, and a page without one does not load it', async ({ page }) => {
  const urls = requested(page);
  await open(page, path.join(built, 'reference/hub-protocol.html'));
  await expect.poll(async () => (await page.locator('div.mermaid').boundingBox())?.height ?? 0, 'the height of the diagram').toBeGreaterThan(500);
  expect(urls.some((u) => u.includes('mermaid')), 'the page with the diagram loads mermaid').toBeTruthy();
  urls.length = 0;
  await open(page, path.join(built, 'index.html'));
  expect(urls.filter((u) => u.includes('mermaid'))).toEqual([]);
});

for (const colorScheme of ['light', 'dark']) {
  test.describe(`in ${colorScheme} colours`, () => {
    test.use({ colorScheme });
    for (const file of mainPages) {
      test(`axe-core finds nothing serious on ${file}`, async ({ page }) => {
        await open(page, path.join(built, file));
        for (const [size, window] of [['wide', page.viewportSize()], ['narrow', telephone]]) {
          await page.setViewportSize(window);
          if (file.includes('hub-protocol')) {
            await expect(page.locator('div.mermaid')).toBeAttached();
          }
          await settled(page);
          await picture(page, `${file.replace('.html', '').replaceAll('/', '-')}-${colorScheme}-${size}`);
          await expectAccessible(page, size, 'serious', 'critical');
        }
      });
    }

    test('at each time, the recording of the demo shows text within the window', async ({ page }) => {
      await open(page, path.join(repository, 'docs/assets/demo.svg'));
      const length = await page.evaluate(() => Math.max(...document.getAnimations().map((a) => a.effect.getTiming().duration)));
      expect(length, 'the recording lasts 15 to 30 s').toBeGreaterThanOrEqual(15_000);
      expect(length, 'the recording lasts 15 to 30 s').toBeLessThanOrEqual(30_000);
      for (const second of [2, 8, 14, 20, 26]) {
        await page.evaluate((ms) => document.getAnimations().forEach((a) => { a.pause(); a.currentTime = ms; }), second * 1000);
        const { shown, beyond } = await page.locator('svg svg text').evaluateAll((all) => {
          const visible = all.filter((t) => getComputedStyle(t).visibility === 'visible');
          const end = document.documentElement.getBoundingClientRect().right;
          return { shown: visible.length, beyond: visible.filter((t) => t.getBoundingClientRect().right > end).map((t) => t.textContent) };
        });
        expect.soft(shown, `lines after ${second} s`).toBeGreaterThan(0);
        expect.soft(beyond, `lines beyond the window after ${second} s`).toEqual([]);
        await picture(page, `recording-${colorScheme}-${String(second).padStart(2, '0')}`);
      }
    });
  });
}
