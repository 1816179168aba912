package godwit

import (
	"slices"
	"strings"
)

// Reason is why something was found, refused or left as it is. Each is declared once, by a
// [Catalog], in the package that finds it; plans, events, reports and the reference take name,
// meaning and fix from there. Compare reasons with ==. One that was decoded has its name alone.
type Reason struct {
	// Name is in CamelCase. It stands in plans, conditions, events and metrics.
	Name string
	// Meaning says what is the case, in one or several sentences.
	Meaning string
	// Fix is what a user can do about it. Its actions have placeholders for names of objects. A
	// [Finding] of the reason has one or several of its ways, with the names of its object.
	Fix Fix
	// UserAction means that waiting does not help.
	UserAction bool
}

// String is the name of the reason, and empty for nil.
func (r *Reason) String() string {
	if r == nil {
		return ""
	}
	return r.Name
}

// MarshalText encodes the name.
func (r *Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText decodes a name. Meaning and fix of it are in the catalog of the reader.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = Reason{Name: string(text)}
	return nil
}

// Catalog has the reasons of one subject, in the order of their declaration. The zero value is
// an empty catalog.
type Catalog struct{ reasons []*Reason }

// Declare adds a reason. Package variables are declared by it, so that no reason is missing in
// the catalog.
func (c *Catalog) Declare(r Reason) *Reason {
	c.reasons = append(c.reasons, &r)
	return &r
}

// Reasons are all that were declared.
func (c *Catalog) Reasons() []*Reason { return slices.Clone(c.reasons) }

// Find returns the reason of a name, without regard to upper and lower case, or nil.
func (c *Catalog) Find(name string) *Reason {
	at := slices.IndexFunc(c.reasons, func(r *Reason) bool { return strings.EqualFold(r.Name, name) })
	if at < 0 {
		return nil
	}
	return c.reasons[at]
}
