package permission

import (
	"slices"
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
	// ExternalNamePlan is also for ready, and for save to a file.
	ExternalNamePlan Command = "externalname-plan"
	// ExternalNameApply is also for rollback, and for restore from a file.
	ExternalNameApply Command = "externalname-apply"
	// HubAgent is `godwit agent`, which runs as a ServiceAccount.
	HubAgent Command = "hub-agent"
)

// Commands lists them in the order of the help.
var Commands = []Command{CRDPlan, CRDRun, CRDVerify, CRDCheck, RevisionPlan, RevisionStatus, RevisionRun, RevisionRollback, RevisionFix, ExternalNamePlan, ExternalNameApply, HubAgent}

// OfCRDs reports whether the command is about CustomResourceDefinitions, and not about
// revisions.
func (c Command) OfCRDs() bool {
	return slices.Contains([]Command{CRDPlan, CRDRun, CRDVerify, CRDCheck}, c)
}

// OfManagedResources reports whether a command is about managed resources, which the CRDs of
// the scope name.
func (c Command) OfManagedResources() bool { return c == ExternalNamePlan || c == ExternalNameApply }

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
	case ExternalNamePlan:
		return s.externalNamePlan()
	case ExternalNameApply:
		return s.externalNameApply()
	case HubAgent:
		return s.hubAgent()
	}
	return s.revisionPlan()
}
