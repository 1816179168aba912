package godwit

import (
	"slices"
	"strings"
)

// Reason is the reason of a finding, a refusal or a skipped object. Each is declared once, with a [Catalog], in the
// package that reports it; plans, events, reports and the reference read name, meaning and fix there. Compare reasons
// with ==. A decoded reason has only its name.
type Reason struct {
	// Name is in CamelCase. Plans, conditions, events and metrics show it.
	Name string
	// Meaning describes the situation, in one or more sentences.
	Meaning string
	// Fix is the general fix. Its actions have placeholders for names of objects. A [Finding] of the reason has one or
	// several of its ways, with the names of its object.
	Fix Fix
	// UserAction means that waiting does not help.
	UserAction bool
}

// String returns the name of the reason, or empty for nil.
func (r *Reason) String() string {
	if r == nil {
		return ""
	}
	return r.Name
}

// MarshalText encodes the name.
func (r *Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText decodes a name. The reader's catalog has its meaning and fix.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = Reason{Name: string(text)}
	return nil
}

// Catalog has the reasons of one subject, in the order of their declaration. The zero value is
// an empty catalog.
type Catalog struct{ reasons []*Reason }

// Declare adds a reason and returns it, for the declaration of a package variable. So no reason is missing in the
// catalog.
func (c *Catalog) Declare(r Reason) *Reason {
	c.reasons = append(c.reasons, &r)
	return &r
}

// Reasons returns all declared reasons.
func (c *Catalog) Reasons() []*Reason { return slices.Clone(c.reasons) }

// Find returns the reason with a name, ignoring letter case, or nil.
func (c *Catalog) Find(name string) *Reason {
	at := slices.IndexFunc(c.reasons, func(r *Reason) bool { return strings.EqualFold(r.Name, name) })
	if at < 0 {
		return nil
	}
	return c.reasons[at]
}
