package chromium

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Page is a tab.
type Page struct {
	browser *Browser
	session string
}

// Options of a page.
type Options struct {
	// Dark is the colour scheme that the user prefers.
	Dark bool
	// NoScript switches JavaScript of the page off.
	NoScript      bool
	Width, Height int
}

// Open opens a file, without a network, and returns when it is loaded.
func (b *Browser) Open(ctx context.Context, file string, o Options) (*Page, error) {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{browser: b, session: attached.SessionID}
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"Page.enable", nil}, {"Runtime.enable", nil}, {"Network.enable", nil},
		{"Network.emulateNetworkConditions", map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}},
		{"Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}},
		{"Emulation.setScriptExecutionDisabled", map[string]any{"value": o.NoScript}},
	} {
		if err := p.call(ctx, c.method, c.params, nil); err != nil {
			return nil, err
		}
	}
	if err := p.Resize(ctx, o.Width, o.Height); err != nil {
		return nil, err
	}
	return p, p.Navigate(ctx, file)
}

// Navigate opens another file in the page, and returns when it is loaded. A file may have an anchor, after "#".
func (p *Page) Navigate(ctx context.Context, file string) error {
	name, anchor, _ := strings.Cut(file, "#")
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	p.browser.forget(p.session)
	loaded := p.browser.expect(p.session, "Page.loadEventFired")
	if err := p.call(ctx, "Page.navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: path, Fragment: anchor}).String()}, nil); err != nil {
		return err
	}
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Loaded are the URLs that the page has requested since it was opened, its own among them.
func (p *Page) Loaded() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return slices.Clone(p.browser.loads[p.session])
}

// Resize changes the size of the window.
func (p *Page) Resize(ctx context.Context, width, height int) error {
	return p.call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

func (p *Page) call(ctx context.Context, method string, params map[string]any, result any) error {
	return p.browser.call(ctx, p.session, method, params, result)
}

// Evaluate runs an expression in the page and reads its value, or that of its promise, as JSON.
func (p *Page) Evaluate(ctx context.Context, expression string, value any) error {
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	switch {
	case err != nil:
		return err
	case got.Exception != nil:
		return fmt.Errorf("evaluate: %s %s", got.Exception.Text, got.Exception.Exception.Description)
	case value == nil:
		return nil
	case got.Result.Value == nil:
		return errors.New("evaluate: the expression has no value")
	}
	return json.Unmarshal(got.Result.Value, value)
}

// keys that are no text, by name, with their codes.
var keys = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40}

// Press presses keys, each a name or a character.
func (p *Page) Press(ctx context.Context, pressed ...string) error {
	for _, key := range pressed {
		params := map[string]any{"type": "keyDown", "key": key}
		switch code, named := keys[key]; {
		case named:
			params["windowsVirtualKeyCode"] = code
			if key == "Enter" {
				params["text"] = "\r"
			}
		default:
			params["text"] = key
		}
		if err := p.call(ctx, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
		if err := p.call(ctx, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": keys[key]}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Screenshot writes a picture of the window into a file, and makes its folder.
func (p *Page) Screenshot(ctx context.Context, file string) error {
	var got struct {
		Data string `json:"data"`
	}
	if err := p.call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &got); err != nil {
		return err
	}
	picture, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o600)
}
