package directory

import (
	"errors"
	"fmt"

	"github.com/go-ldap/ldap/v3"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// readError says what the answer to a request about an entry means. The server names the last entry above it that exists: if
// that is the parent, the entry is missing, and else something above it.
func readError(dn string, err error) error {
	var answer *ldap.Error
	if !errors.As(err, &answer) || answer.ResultCode != ldap.LDAPResultNoSuchObject {
		return err
	}
	if Same(answer.MatchedDN, Parent(dn)) {
		return fmt.Errorf("%w: %w", crossplane.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", crossplane.ErrParentNotFound, err)
}

// writeError says what the answer to a write means. Without an answer, the server may have carried it out: the client of LDAP
// returns most errors of the network as texts, so that only a result code of the server is an answer.
func writeError(err error) error {
	var answer *ldap.Error
	switch {
	case !errors.As(err, &answer) || answer.ResultCode >= ldap.ErrorNetwork:
		return fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, err)
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultEntryAlreadyExists, ldap.LDAPResultAttributeOrValueExists):
		return fmt.Errorf("%w: %w", crossplane.ErrAlreadyExists, err)
	case answer.ResultCode == ldap.LDAPResultNoSuchObject:
		return fmt.Errorf("%w: %w", crossplane.ErrParentNotFound, err)
	case answer.ResultCode == ldap.LDAPResultNoSuchAttribute:
		return fmt.Errorf("%w: %w", crossplane.ErrNotFound, err)
	}
	return err
}
