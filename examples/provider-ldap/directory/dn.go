package directory

import (
	"fmt"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Join returns the DN of the entry below the parent whose attribute has the value.
func Join(attribute, value, parent string) string {
	return fmt.Sprintf("%s=%s,%s", attribute, ldap.EscapeDN(value), parent)
}

// Parent returns the DN of the entry that contains an entry.
func Parent(dn string) string {
	parsed, err := ldap.ParseDN(dn)
	if err != nil || len(parsed.RDNs) == 0 {
		return ""
	}
	return (&ldap.DN{RDNs: parsed.RDNs[1:]}).String()
}

// Normalize returns a DN in lower case and without optional spaces. It returns a text that is not a DN as it is.
func Normalize(dn string) string {
	parsed, err := ldap.ParseDN(dn)
	if err != nil {
		return dn
	}
	return strings.ToLower(parsed.String())
}

// Same reports whether two DNs name the same entry.
func Same(a, b string) bool { return Normalize(a) == Normalize(b) }

// IsDN reports whether a text is a DN of at least one part.
func IsDN(text string) bool {
	parsed, err := ldap.ParseDN(text)
	return err == nil && len(parsed.RDNs) > 0
}

// rdn returns the first part of a DN.
func rdn(dn string) string {
	parsed, err := ldap.ParseDN(dn)
	if err != nil || len(parsed.RDNs) == 0 {
		return dn
	}
	return parsed.RDNs[0].String()
}

// Name returns the value of the first part of a DN, such as jane of uid=jane,ou=people.
func Name(dn string) string {
	parsed, err := ldap.ParseDN(dn)
	if err != nil || len(parsed.RDNs) == 0 {
		return dn
	}
	return parsed.RDNs[0].Attributes[0].Value
}
