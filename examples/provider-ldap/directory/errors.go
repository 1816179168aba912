package directory

import (
	"errors"
	"fmt"

	"github.com/go-ldap/ldap/v3"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// readError classifies the answer to a request about an entry. If the entry does not exist, the server names the nearest
// entry above it that exists: if that is the parent, only the entry is missing, and otherwise its parent is missing, too.
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

// writeError classifies the answer to a write. Without an answer, the server may have carried out the write. The LDAP client
// returns most network errors as plain texts, so only a result code of the server counts as an answer.
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
