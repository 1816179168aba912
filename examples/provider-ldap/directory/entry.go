package directory

import (
	"slices"

	"github.com/go-ldap/ldap/v3"
)

const (
	// tokenAttribute has the token of the creation. LDAP allows a language option on every attribute: the directory needs
	// no schema of this provider, and the plain description stays the user's.
	tokenAttribute = "description;lang-x-godwit"
	idAttribute    = "entryUUID"
)

// Entry is an entry of the directory.
type Entry struct {
	// ID is the entryUUID. The server makes it, and a rename keeps it.
	ID string
	DN string
	// Attributes are the attributes without the ID and the tokens, by name.
	Attributes map[string][]string
	// Tokens are the tokens of the creations.
	Tokens []string
}

// First returns the first value of an attribute.
func (e *Entry) First(attribute string) string {
	if values := e.Attributes[attribute]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func entryOf(from *ldap.Entry) *Entry {
	e := &Entry{DN: from.DN, Attributes: map[string][]string{}}
	for _, attribute := range from.Attributes {
		switch attribute.Name {
		case idAttribute:
			e.ID = attribute.Values[0]
		case tokenAttribute:
			e.Tokens = attribute.Values
		default:
			e.Attributes[attribute.Name] = attribute.Values
		}
	}
	return e
}

// changes returns the request that gives an entry the desired attributes. Other attributes stay as they are.
func changes(observed, desired *Entry) *ldap.ModifyRequest {
	request := ldap.NewModifyRequest(desired.DN, nil)
	for name, values := range desired.Attributes {
		values = filled(values)
		if name != "objectClass" && !slices.Equal(values, observed.Attributes[name]) {
			request.Replace(name, values)
		}
	}
	return request
}

// filled drops empty values, because no attribute of a person may have one.
func filled(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}
