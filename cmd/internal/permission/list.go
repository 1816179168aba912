package permission

import (
	"slices"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/revision"
)

// Command is a command that needs permissions, as `godwit rbac --for` names it.
type Command string

// Commands.
const (
	CRDPlan          Command = "crd-plan"
	CRDRun           Command = "crd-run"
	CRDVerify        Command = "crd-verify"
	CRDCheck         Command = "crd-check"
	RevisionPlan     Command = "revision-plan"
	RevisionStatus   Command = "revision-status"
	RevisionRun      Command = "revision-run"
	RevisionRollback Command = "revision-rollback"
	RevisionFix      Command = "revision-fix"
)

// Commands lists them in the order of the help.
var Commands = []Command{CRDPlan, CRDRun, CRDVerify, CRDCheck, RevisionPlan, RevisionStatus, RevisionRun, RevisionRollback, RevisionFix}

// OfCRDs reports whether the command is about CustomResourceDefinitions, and not about
// revisions.
func (c Command) OfCRDs() bool {
	return slices.Contains([]Command{CRDPlan, CRDRun, CRDVerify, CRDCheck}, c)
}

// Scope says what a command is about.
type Scope struct {
	// CRDs names CustomResourceDefinitions, and APIGroups all of a group.
	CRDs, APIGroups []string
	// Listed means that the command finds the names of CRDs by itself, by a selector or
	// because it is about all of them.
	Listed bool
	// Write of a run; empty means the default.
	Write storageversion.Write
	// Family of the revisions.
	Family revision.Description
	// Namespace of the revisions; empty means all.
	Namespace string
}

// For lists the permissions that a command needs in a scope, the reading ones first.
func For(c Command, s Scope) []Permission {
	switch c {
	case CRDPlan:
		return s.crdPlan()
	case CRDRun:
		return s.crdRun()
	case CRDVerify:
		return s.readCRDs()
	case CRDCheck:
		return s.crdCheck()
	case RevisionRun:
		return s.revisionRun()
	case RevisionRollback:
		return s.revisionRollback()
	case RevisionFix:
		return s.revisionFix()
	}
	return s.revisionPlan()
}
