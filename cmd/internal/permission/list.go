package permission

import (
	"slices"
)

// Command is a command that needs permissions, as `godwit rbac --for` names it.
type Command string

// Commands.
const (
	// Plan is `godwit plan`.
	Plan Command = "plan"

	CRDPlan          Command = "crd-plan"
	CRDRun           Command = "crd-run"
	CRDVerify        Command = "crd-verify"
	CRDCheck         Command = "crd-check"
	CRDRescue        Command = "crd-rescue"
	CRDBridge        Command = "crd-bridge"
	CRDDoctor        Command = "crd-doctor"
	ResourcePlan     Command = "resource-plan"
	ResourceRun      Command = "resource-run"
	ResourceVerify   Command = "resource-verify"
	RevisionPlan     Command = "revision-plan"
	RevisionStatus   Command = "revision-status"
	RevisionRun      Command = "revision-run"
	RevisionRollback Command = "revision-rollback"
	RevisionFix      Command = "revision-fix"
	// ExternalNamePlan is also for ready, and for save to a file.
	ExternalNamePlan Command = "externalname-plan"
	// ExternalNameApply is also for rollback, and for restore from a file.
	ExternalNameApply Command = "externalname-apply"
	// ClusterPreflight is `godwit cluster preflight` and status on the global hub.
	ClusterPreflight Command = "cluster-preflight"
	// ClusterHub is what `godwit cluster preflight` reads of each hub.
	ClusterHub Command = "cluster-hub"
	// ClusterRun is `godwit cluster start`, abort and retry.
	ClusterRun Command = "cluster-run"
	// ClusterEnroll is `godwit cluster enroll`.
	ClusterEnroll Command = "cluster-enroll"
	// HubAgent is `godwit agent`, which runs as a ServiceAccount.
	HubAgent Command = "hub-agent"
	// Version is `godwit version`, which finds managers.
	Version Command = "version"
)

// Commands lists them in the order of the help.
var Commands = []Command{Plan, CRDPlan, CRDRun, CRDVerify, CRDCheck, CRDDoctor, CRDRescue, CRDBridge, ResourcePlan, ResourceRun, ResourceVerify, RevisionPlan, RevisionStatus, RevisionRun, RevisionRollback, RevisionFix, ExternalNamePlan, ExternalNameApply, ClusterPreflight, ClusterHub, ClusterRun, ClusterEnroll, HubAgent, Version}

// OfCRDs reports whether the command is about CustomResourceDefinitions that it names, and not about
// revisions.
func (c Command) OfCRDs() bool {
	return slices.Contains([]Command{Plan, CRDPlan, CRDRun, CRDVerify, CRDCheck, CRDDoctor, CRDRescue, CRDBridge}, c)
}

// OfResources reports whether a command is about any resources.
func (c Command) OfResources() bool {
	return slices.Contains([]Command{ResourcePlan, ResourceRun, ResourceVerify}, c)
}

// OfManagedResources reports whether a command is about managed resources, which the CRDs of
// the scope name.
func (c Command) OfManagedResources() bool { return c == ExternalNamePlan || c == ExternalNameApply }

// OfClusters reports whether a command is about migrations of managed clusters.
func (c Command) OfClusters() bool {
	return slices.Contains([]Command{ClusterPreflight, ClusterHub, ClusterRun, ClusterEnroll}, c)
}

// InNamespaces reports whether a command about migrations of managed clusters is about the
// migrations in a namespace or in all.
func (c Command) InNamespaces() bool { return c == ClusterPreflight || c == ClusterRun }

// Installation is the namespace in which the guide installs the manager, or the agent of a hub, whichever
// a command about migrations of managed clusters is for.
func (c Command) Installation() string {
	if c == ClusterHub {
		return AgentNamespace
	}
	return ManagerNamespace
}

// Namespaces of the installation guide. The manager and the agent of one hub each keep a key there, in a
// Secret of the same name.
const (
	ManagerNamespace = "godwit"
	AgentNamespace   = "godwit-agent"
)

// listed has the permissions of each command but revision-plan.
var listed = map[Command]func(Scope) []Permission{
	Plan:              Scope.plan,
	CRDPlan:           Scope.crdPlan,
	CRDRun:            Scope.crdRun,
	CRDVerify:         Scope.readCRDs,
	CRDBridge:         Scope.readCRDs,
	CRDCheck:          Scope.crdCheck,
	CRDRescue:         Scope.crdRescue,
	CRDDoctor:         Scope.crdDoctor,
	ResourcePlan:      Scope.resourcePlan,
	ResourceRun:       Scope.resourceRun,
	ResourceVerify:    Scope.resourceVerify,
	RevisionRun:       Scope.revisionRun,
	RevisionRollback:  Scope.revisionRollback,
	RevisionFix:       Scope.revisionFix,
	ExternalNamePlan:  Scope.externalNamePlan,
	ExternalNameApply: Scope.externalNameApply,
	ClusterPreflight:  Scope.clusterPreflight,
	ClusterHub:        Scope.clusterHub,
	ClusterRun:        Scope.clusterRun,
	ClusterEnroll:     Scope.clusterEnroll,
	HubAgent:          Scope.hubAgent,
	Version:           Scope.version,
}

// For lists the permissions that a command needs in a scope, the reading ones first.
func For(c Command, s Scope) []Permission {
	if list, ok := listed[c]; ok {
		return list(s)
	}
	return s.revisionPlan()
}
