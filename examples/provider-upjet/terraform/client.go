package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/examples/provider-upjet/service"
)

// errNotFound means that the item does not exist. An error about its bucket is another one.
var errNotFound = errors.New("not found")

// client sends requests to the service.
type client struct{ endpoint string }

func clientOf(meta any) client {
	c, _ := meta.(client)
	return c
}

// timeout bounds a request.
const timeout = 20 * time.Second

var transport = &http.Client{Timeout: timeout}

func (c client) create(ctx context.Context, kind string, item service.Item) (service.Item, error) {
	return c.send(ctx, http.MethodPost, kind, "", item)
}

func (c client) read(ctx context.Context, kind, id string) (service.Item, error) {
	return c.send(ctx, http.MethodGet, kind, id, nil)
}

func (c client) update(ctx context.Context, kind, id string, item service.Item) (service.Item, error) {
	return c.send(ctx, http.MethodPut, kind, id, item)
}

func (c client) delete(ctx context.Context, kind, id string) error {
	_, err := c.send(ctx, http.MethodDelete, kind, id, nil)
	return err
}

func (c client) send(ctx context.Context, method, kind, id string, body any) (service.Item, error) {
	address := c.endpoint + "/" + kind
	if id != "" {
		address += "/" + url.PathEscape(id)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return service.Item{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return service.Item{}, err
	}
	response, err := transport.Do(request)
	if err != nil {
		return service.Item{}, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return service.Item{}, err
	case response.StatusCode == http.StatusNotFound:
		return service.Item{}, errNotFound
	case response.StatusCode >= http.StatusBadRequest:
		return service.Item{}, fmt.Errorf("%s %s: %s: %s", method, address, response.Status, strings.TrimSpace(string(answer)))
	}
	var item service.Item
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &item)
	}
	return item, err
}
