// Package directory is a client of an LDAP directory, which every provider needs in some form. It knows nothing of managed
// resources. It returns the errors that package crossplane declares.
//
// Entries are identified by the entryUUID. errors.go says what each answer of the server means.
package directory

import (
	"context"
	"fmt"
	"iter"
	"net"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Config says how to reach a directory.
type Config struct {
	URL, BaseDN, BindDN, Password string
}

// Client sends requests to a directory, one after the other. The first request connects.
type Client struct {
	config Config
	conn   *ldap.Conn
}

// New returns a client, which the caller closes. It sends nothing.
func New(c Config) *Client { return &Client{config: c} }

// Close ends the connection.
func (c *Client) Close(context.Context) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

const (
	requestTimeout = 30 * time.Second
	// pageSize is the smallest limit that servers have by default.
	pageSize = 10
)

// connection returns a connection whose requests end at the deadline of ctx. The LDAP client accepts no context, so a
// request ends only by a timeout.
func (c *Client) connection(ctx context.Context) (*ldap.Conn, error) {
	timeout := requestTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.conn == nil || c.conn.IsClosing() {
		conn, err := ldap.DialURL(c.config.URL, ldap.DialWithDialer(&net.Dialer{Timeout: timeout}))
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", c.config.URL, err)
		}
		conn.SetTimeout(timeout)
		if err := conn.Bind(c.config.BindDN, c.config.Password); err != nil {
			return nil, fmt.Errorf("log in as %s: %w", c.config.BindDN, err)
		}
		c.conn = conn
	}
	c.conn.SetTimeout(timeout)
	return c.conn, nil
}

// Get reads the entry that has an ID.
func (c *Client) Get(ctx context.Context, id string) (*Entry, error) {
	found, err := c.find(ctx, "(entryUUID="+ldap.EscapeFilter(id)+")")
	switch {
	case err != nil:
		return nil, fmt.Errorf("read entry %s: %w", id, err)
	case len(found) == 0:
		return nil, fmt.Errorf("read entry %s: %w", id, crossplane.ErrNotFound)
	}
	return found[0], nil
}

// Find returns the IDs of the entries of a class that have the value.
func (c *Client) Find(ctx context.Context, class, attribute, value string) ([]string, error) {
	found, err := c.find(ctx, fmt.Sprintf("(&(objectClass=%s)(%s=%s))", class, attribute, ldap.EscapeFilter(value)))
	ids := make([]string, len(found))
	for i, e := range found {
		ids[i] = e.ID
	}
	return ids, err
}

func (c *Client) find(ctx context.Context, filter string) ([]*Entry, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	result, err := conn.SearchWithPaging(search(c.config.BaseDN, ldap.ScopeWholeSubtree, filter), pageSize)
	if err != nil {
		return nil, readError(c.config.BaseDN, err)
	}
	entries := make([]*Entry, len(result.Entries))
	for i, e := range result.Entries {
		entries[i] = entryOf(e)
	}
	return entries, nil
}

func search(base string, scope int, filter string) *ldap.SearchRequest {
	return ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, 0, 0, false, filter, []string{"*", idAttribute}, nil)
}

// List lists the entries of a class, page by page.
func (c *Client) List(ctx context.Context, class string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		page := ldap.NewControlPaging(pageSize)
		for more := true; more; {
			var entries []*ldap.Entry
			var err error
			if entries, more, err = c.page(ctx, class, page); err != nil {
				yield(nil, fmt.Errorf("list entries of class %s: %w", class, err))
				return
			}
			for _, e := range entries {
				if !yield(entryOf(e), nil) {
					return
				}
			}
		}
	}
}

// page reads one page. It sets the cookie of the control to the next page.
func (c *Client) page(ctx context.Context, class string, page *ldap.ControlPaging) (entries []*ldap.Entry, more bool, err error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, false, err
	}
	request := search(c.config.BaseDN, ldap.ScopeWholeSubtree, "(objectClass="+class+")")
	request.Controls = []ldap.Control{page}
	result, err := conn.Search(request)
	if err != nil {
		return nil, false, readError(c.config.BaseDN, err)
	}
	next, ok := ldap.FindControl(result.Controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
	if more = ok && len(next.Cookie) > 0; more {
		page.SetCookie(next.Cookie)
	}
	return result.Entries, more, nil
}

// IDs lists the IDs of the entries of a class.
func (c *Client) IDs(ctx context.Context, class string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range c.List(ctx, class) {
			id := ""
			if err == nil {
				id = e.ID
			}
			if !yield(id, err) {
				return
			}
		}
	}
}
