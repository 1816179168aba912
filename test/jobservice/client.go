package jobservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// Client is a client of the service, as the author of a provider has it.
type Client struct {
	// URL is the address of the service.
	URL string
}

// AnswerError is an answer of the service without a code of success.
type AnswerError struct {
	Method, Path, Status, Text string
	Code                       int
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", e.Method, e.Path, e.Status, e.Text)
}

// Answered reports whether an error is an answer with a code.
func Answered(err error, code int) bool {
	var answer *AnswerError
	return errors.As(err, &answer) && answer.Code == code
}

// connections keeps a connection open for each request that a provider has in flight. Go keeps two by default.
var connections = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// maxAnswer is larger than a page of databases.
const maxAnswer = 1 << 20 // bytes

func (c Client) send(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := connections.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case response.StatusCode >= http.StatusBadRequest:
		return &AnswerError{Method: method, Path: path, Status: response.Status, Text: string(text), Code: response.StatusCode}
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}

// Create begins the creation of a database, and returns the ID of the operation.
func (c Client) Create(ctx context.Context, d Database) (operation string, err error) {
	var made struct{ Operation string }
	err = c.send(ctx, http.MethodPost, "/databases", d, &made)
	return made.Operation, err
}

// Read reads a database.
func (c Client) Read(ctx context.Context, id string) (d Database, err error) {
	err = c.send(ctx, http.MethodGet, "/databases/"+url.PathEscape(id), nil, &d)
	return d, err
}

// Update writes a database.
func (c Client) Update(ctx context.Context, id string, d Database) error {
	return c.send(ctx, http.MethodPut, "/databases/"+url.PathEscape(id), d, nil)
}

// Delete begins the deletion of a database.
func (c Client) Delete(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, "/databases/"+url.PathEscape(id), nil, nil)
}

// Operation reads an operation.
func (c Client) Operation(ctx context.Context, id string) (o Operation, err error) {
	err = c.send(ctx, http.MethodGet, "/operations/"+url.PathEscape(id), nil, &o)
	return o, err
}

// OperationOf finds the operation whose request had the token.
func (c Client) OperationOf(ctx context.Context, token string) (o Operation, err error) {
	err = c.send(ctx, http.MethodGet, "/operations?token="+url.QueryEscape(token), nil, &o)
	return o, err
}

// All reads all databases, page by page.
func (c Client) All(ctx context.Context) iter.Seq2[Database, error] {
	return func(yield func(Database, error) bool) {
		after := ""
		for {
			var page []Database
			if err := c.send(ctx, http.MethodGet, "/databases?after="+url.QueryEscape(after), nil, &page); err != nil {
				yield(Database{}, err)
				return
			}
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
				after = d.ID
			}
			if len(page) == 0 {
				return
			}
		}
	}
}
