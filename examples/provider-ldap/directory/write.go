package directory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Add creates an entry with the token of the creation, and returns the ID that the server has made. The LDAP client can't
// read the post-read control in the answer to an addition, so Add reads the entry by its DN and its token: the token
// distinguishes it from an entry of another client.
func (c *Client) Add(ctx context.Context, e Entry, token string) (string, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return "", err
	}
	request := ldap.NewAddRequest(e.DN, nil)
	for name, values := range e.Attributes {
		if name == "member" {
			request.Attribute(name, values) // A group without members has an empty DN as its only member.
		} else if values = filled(values); len(values) > 0 {
			request.Attribute(name, values)
		}
	}
	request.Attribute(tokenAttribute, []string{token})
	if err := conn.Add(request); err != nil {
		return "", fmt.Errorf("add entry %q: %w", e.DN, writeError(err))
	}
	result, err := conn.Search(search(e.DN, ldap.ScopeBaseObject, "("+tokenAttribute+"="+ldap.EscapeFilter(token)+")"))
	if err != nil || len(result.Entries) != 1 {
		return "", fmt.Errorf("%w: entry %q was added, and can't be read: %v", crossplane.ErrOutcomeUnknown, e.DN, err) //nolint:errorlint // The entry may exist, whatever this error is.
	}
	return entryOf(result.Entries[0]).ID, nil
}

// Write gives an observed entry the desired DN and attributes.
func (c *Client) Write(ctx context.Context, observed *Entry, desired Entry) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	if !Same(observed.DN, desired.DN) {
		parent := Parent(desired.DN)
		if Same(Parent(observed.DN), parent) {
			parent = "" // The parent stays.
		}
		if err := conn.ModifyDN(ldap.NewModifyDNRequest(observed.DN, rdn(desired.DN), true, parent)); err != nil {
			return fmt.Errorf("rename entry %q: %w", observed.DN, writeError(err))
		}
	}
	if request := changes(observed, &desired); len(request.Changes) > 0 {
		if err := conn.Modify(request); err != nil {
			return fmt.Errorf("change entry %q: %w", desired.DN, writeError(err))
		}
	}
	return nil
}

// Delete deletes the entry that has an ID.
func (c *Client) Delete(ctx context.Context, id string) error {
	e, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	if err := conn.Del(ldap.NewDelRequest(e.DN, nil)); err != nil {
		return fmt.Errorf("delete entry %q: %w", e.DN, readError(e.DN, err))
	}
	return nil
}

// Member is a member of a group.
type Member struct {
	Group *Entry
	// DN is the DN as the group has it.
	DN string
	// Tokens are the tokens of the creations of this member.
	Tokens []string
}

// Members returns the members of a group.
func (e *Entry) Members() []Member {
	var members []Member
	for _, dn := range filled(e.Attributes["member"]) {
		m := Member{Group: e, DN: dn}
		for _, value := range e.Tokens {
			if token, of, ok := strings.Cut(value, " "); ok && Same(of, dn) {
				m.Tokens = append(m.Tokens, token)
			}
		}
		members = append(members, m)
	}
	return members
}

// Member reads a member of the group that has an ID. If the group does not exist, the error is crossplane.ErrParentNotFound,
// and not ErrNotFound, because then nothing is known about the member.
func (c *Client) Member(ctx context.Context, group, dn string) (Member, error) {
	e, err := c.group(ctx, group)
	if err != nil {
		return Member{}, err
	}
	for _, m := range e.Members() {
		if Same(m.DN, dn) {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("member %q of group %q: %w", dn, e.DN, crossplane.ErrNotFound)
}

func (c *Client) group(ctx context.Context, id string) (*Entry, error) {
	found, err := c.find(ctx, "(&(objectClass=groupOfNames)(entryUUID="+ldap.EscapeFilter(id)+"))")
	switch {
	case err != nil:
		return nil, fmt.Errorf("read group %s: %w", id, err)
	case len(found) == 0:
		return nil, fmt.Errorf("read group %s: %w", id, crossplane.ErrParentNotFound)
	}
	return found[0], nil
}

// AddMember adds a member to a group, together with the token of the creation.
func (c *Client) AddMember(ctx context.Context, group, dn, token string) error {
	e, err := c.group(ctx, group)
	if err != nil {
		return err
	}
	request := ldap.NewModifyRequest(e.DN, nil)
	request.Add("member", []string{dn})
	request.Add(tokenAttribute, []string{token + " " + dn})
	return c.modify(ctx, request)
}

// ReplaceMember removes one member and adds another in one request. If by is empty, it only removes the member.
func (c *Client) ReplaceMember(ctx context.Context, m Member, by string) error {
	request := ldap.NewModifyRequest(m.Group.DN, nil)
	request.Delete("member", []string{m.DN})
	if by != "" {
		request.Add("member", []string{by})
	}
	ours := func(value string) bool { _, of, ok := strings.Cut(value, " "); return ok && Same(of, m.DN) }
	if left := slices.DeleteFunc(slices.Clone(m.Group.Tokens), ours); len(left) < len(m.Group.Tokens) {
		request.Replace(tokenAttribute, left)
	}
	return c.modify(ctx, request)
}

func (c *Client) modify(ctx context.Context, request *ldap.ModifyRequest) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	if err := conn.Modify(request); err != nil {
		return fmt.Errorf("change group %q: %w", request.DN, writeError(err))
	}
	return nil
}
