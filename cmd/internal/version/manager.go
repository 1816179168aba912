package version

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/godwit-dev/godwit/cmd/internal/serving"
)

// Roles of programs.
const (
	RoleClient    = "Client"
	RoleManager   = "Manager"
	RoleAPIServer = "APIServer"
)

// States of a program.
const (
	StateFound       = "Found"
	StateNotRunning  = "NotRunning"
	StateNotFound    = "NotFound"
	StateNotReadable = "NotReadable"
)

// Program is one program and its version.
type Program struct {
	Role    string `json:"role"`
	State   string `json:"state"`
	Version string `json:"version"`
	// Component is the feature of a manager, or the agent of a hub.
	Component string `json:"component"`
	Namespace string `json:"namespace"`
	// Server is the address of an API server.
	Server    string `json:"server"`
	Commit    string `json:"commit"`
	Modified  bool   `json:"modified"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Message is the cause, unless the program is found.
	Message string `json:"message"`
}

// managers returns a program for each lease. where is the namespace in which the leases were looked for, or all.
func managers(leases []coordinationv1.Lease, where string, now time.Time) []Program {
	if len(leases) == 0 {
		return []Program{{
			Role: RoleManager, State: StateNotFound,
			Message: "no lease in " + where + " has the labels of a manager: none has been elected there, or it runs with --leader-elect=false",
		}}
	}
	var all []Program
	for i := range leases {
		p := Program{Role: RoleManager, State: StateFound, Namespace: leases[i].Namespace}
		p.Component, p.Version = serving.Process(&leases[i])
		if why := whyNotHeld(&leases[i], now); why != "" {
			p.State, p.Message = StateNotRunning, why
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Program) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Component, b.Component))
	})
	return all
}

// clockSkew bounds the difference between the clocks of this machine and of the manager: a renewal is a time of the
// manager's clock.
const clockSkew = time.Minute

// whyNotHeld returns why no process holds a lease, or empty if one does.
func whyNotHeld(lease *coordinationv1.Lease, now time.Time) string {
	s := lease.Spec
	switch {
	case s.HolderIdentity == nil || *s.HolderIdentity == "":
		return "it has ended, and released its lease"
	case s.RenewTime == nil || s.LeaseDurationSeconds == nil:
		return "its lease was never renewed"
	case now.After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second + clockSkew)):
		return fmt.Sprintf("%s renewed its lease last at %s", *s.HolderIdentity, s.RenewTime.UTC().Format(time.RFC3339))
	}
	return ""
}
