// Package record has the controller of the kind Record, and the client that it uses.
package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Entry is a record as the API returns it. It has neither the zone nor the name, which are in its URL.
type Entry struct {
	Value string `json:"value"`
	TTL   int64  `json:"ttl"`
	// Comment has the mark of the creation.
	Comment string `json:"comment,omitempty"`
}

// Client is a client of the API.
type Client struct{ URL string }

func (c Client) get(ctx context.Context, k Key) (e Entry, err error) {
	err = c.do(ctx, http.MethodGet, k, nil, &e)
	return e, err
}

func (c Client) create(ctx context.Context, k Key, e Entry) error {
	return c.do(ctx, http.MethodPost, k, e, nil)
}

func (c Client) update(ctx context.Context, k Key, e Entry) error {
	return c.do(ctx, http.MethodPut, k, e, nil)
}

func (c Client) delete(ctx context.Context, k Key) error {
	return c.do(ctx, http.MethodDelete, k, nil, nil)
}

// do sends a request. Its error says what an answer means.
func (c Client) do(ctx context.Context, method string, k Key, body, into any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	address := c.URL + "/zones/" + url.PathEscape(k.Zone) + "/records/" + url.PathEscape(k.Name)
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, err) // What is not an answer is not a refusal.
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch code := response.StatusCode; {
	case err != nil || code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s %s", crossplane.ErrOutcomeUnknown, response.Status, answer)
	case code == http.StatusNotFound && string(answer) == "no such zone":
		return fmt.Errorf("zone %s: %w", k.Zone, crossplane.ErrParentNotFound)
	case code == http.StatusNotFound:
		return fmt.Errorf("record %s: %w", k.Name, crossplane.ErrNotFound)
	case code == http.StatusConflict && method == http.MethodPost:
		return fmt.Errorf("record %s: %w", k.Name, crossplane.ErrAlreadyExists)
	case code >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s %s", method, address, response.Status, answer)
	case into != nil:
		return json.Unmarshal(answer, into)
	}
	return nil
}
