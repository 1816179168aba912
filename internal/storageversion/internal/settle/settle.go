// Package settle decides when every API server has adopted a new storage version, as far as
// the servers' leases show, so that the first write may be sent.
package settle

import (
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

const (
	// Default is 15 s, in which a server's watch brings the change, and
	// 60 s, the API server's request timeout, for requests that began before
	// the change.
	Default = 75 * time.Second

	// watchShare is the part of the settle time that belongs to the watch.
	watchShare = 5

	// renewEvery is the longest time between two renewals of an API server's identity
	// lease: kube-apiserver renews it every 10 s, and adds up to 4 %.
	renewEvery = 10400 * time.Millisecond

	// staleAfter is one and a half of the 10 s at which API servers renew
	// their identity leases.
	staleAfter = 15 * time.Second

	// overdue is the time until the leases are read again if a renewal is late, and the
	// lease not yet stale.
	overdue = 500 * time.Millisecond
)

// Again is short enough that no stale lease goes unnoticed between two readings.
const Again = 5 * time.Second

// WatchLag is the part of the default settle time that a server's watch gets.
const WatchLag = Default / watchShare

// Terms are what the user decides about the wait, as Policy of package storageversion has it.
type Terms struct {
	Settle            time.Duration
	SettleFromSight   bool
	AcceptStaleLeases bool
}

// Time is the settle time.
func (t Terms) Time() time.Duration {
	switch {
	case t.Settle < 0:
		return 0
	case t.Settle == 0:
		return Default
	}
	return t.Settle
}

func (t Terms) watchLag() time.Duration { return t.Time() / watchShare }

// ChangedBefore is an upper bound of the time at which the storage version was last
// set: the newest time at which an owner of a part of the spec wrote the CRD, plus one
// second, since managedFields have whole seconds. Writers of metadata alone, such as
// this package's checkpoint, do not count. It is false if the time is unknown.
func ChangedBefore(crd *apiextensionsv1.CustomResourceDefinition) (time.Time, bool) {
	var newest time.Time
	for _, e := range kube.EntriesOf(crd, "spec") {
		if e.Time == nil {
			return time.Time{}, false // it may be the newest
		}
		if e.Time.After(newest) {
			newest = e.Time.Time
		}
	}
	return newest.Add(time.Second), !newest.IsZero()
}

// SpecManagers names the owners of parts of a CRD's spec.
func SpecManagers(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var managers []string
	for _, e := range kube.EntriesOf(crd, "spec") {
		managers = append(managers, fmt.Sprintf("%s (%s)", e.Manager, e.Operation))
	}
	return managers
}

// stale reports whether a renewal is overdue: the server is not just between two renewals.
func (s Server) stale(now time.Time) bool { return now.Sub(s.Renewed) > staleAfter }

// History is what one process has seen of the API servers' leases since one
// change of a CRD.
type History struct {
	Spec     kube.Generation
	first    time.Time            // our first reading
	last     time.Time            // our last one
	adopted  time.Time            // since when every server we wait for has adopted; zero: not yet
	seenLate time.Time            // when discovery of the server that answers last had another storage version; zero: never
	late     map[string]time.Time // servers seen with a stale lease, and when they were back; zero: not yet
}

// Settlement is the decision after one reading of the leases.
type Settlement struct {
	Settled bool
	// Until is when writing may begin or, while servers are waited for, when to read again.
	Until   time.Time
	Waiting []Server // not adopted yet
	Stale   []Server // the part of waiting whose renewal is overdue
}

// Observe records one reading of the servers' leases, and decides whether writing may begin.
// A fresh renewal alone proves nothing about a server whose lease was stale: the server renews
// first, and finishes its queued writes, at the old version, afterwards. The settle time
// therefore starts again when the server is seen again.
func (s *History) Observe(crd *apiextensionsv1.CustomResourceDefinition, servers []Server, now time.Time, t Terms) Settlement {
	if s.first.IsZero() {
		s.first, s.late = now, map[string]time.Time{}
	}
	if t.SettleFromSight && len(servers) > 0 && now.Sub(s.last) > staleAfter {
		s.adopted = time.Time{} // a lease may have been stale meanwhile
	}
	s.last = now
	// The CRD was read before the leases were first read, and managedFields
	// have whole seconds. A later write at this generation changed no spec.
	changed := s.first.Add(time.Second)
	if newest, ok := ChangedBefore(crd); ok && newest.Before(changed) {
		changed = newest
	}
	var v Settlement
	for _, server := range servers {
		switch {
		case s.hasAdopted(server, changed, now, t):
			if back, late := s.late[server.Name]; late && back.IsZero() {
				s.late[server.Name], s.adopted = now, time.Time{}
			}
			continue
		case server.stale(now) && t.AcceptStaleLeases:
			continue
		case server.stale(now):
			s.late[server.Name] = time.Time{}
			v.Stale = append(v.Stale, server)
		}
		v.Waiting = append(v.Waiting, server)
	}
	if len(v.Waiting) > 0 {
		s.adopted = time.Time{}
		v.Until = v.nextRenewal(now)
		return v
	}
	if s.adopted.IsZero() {
		s.adopted = now
	}
	from := changed
	if len(s.late) > 0 || t.SettleFromSight {
		from = s.adopted
	}
	v.Until = from.Add(t.Time())
	if !s.seenLate.IsZero() {
		v.Until = latest(v.Until, s.seenLate.Add(max(t.Time(), handlersFollow)))
	}
	v.Settled = !now.Before(v.Until)
	return v
}

// handlersFollow is an upper bound of the time by which the discovery of an API server runs ahead of its handlers, which is about
// a tenth of it.
const handlersFollow = time.Second

// SawLate records that discovery of the server that answers had another storage version. The settle time begins again when it has
// the right one.
func (s *History) SawLate(now time.Time) { s.seenLate = now }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextRenewal is when each of the servers that are waited for has renewed its lease once more,
// and at most Again from now.
func (v Settlement) nextRenewal(now time.Time) time.Time {
	next := now.Add(overdue)
	for _, server := range v.Waiting {
		if renewal := server.Renewed.Add(renewEvery); renewal.After(next) {
			next = renewal
		}
	}
	if latest := now.Add(Again); len(v.Stale) > 0 || next.After(latest) {
		return latest
	}
	return next
}

// hasAdopted reports whether a server has adopted the change, and still renews its lease
// or renewed it until all earlier requests were over. A server that stops before that
// keeps such requests, and finishes them when it continues.
func (s *History) hasAdopted(server Server, changed, now time.Time, t Terms) bool {
	if server.Renewed.Before(changed.Add(t.watchLag())) {
		return false
	}
	if !server.stale(now) {
		return true
	}
	from := changed
	if back, late := s.late[server.Name]; late {
		if back.IsZero() {
			return false
		}
		from = back
	}
	return !server.Renewed.Before(from.Add(t.Time()))
}

// SettlementSince decides about a change that no object of the API shows, such as that of an encryption
// key, from one reading of the leases. since is the time since which all API servers are known to have the
// change; zero while one does not have it.
func SettlementSince(servers []Server, since, now time.Time, t Terms) Settlement {
	var v Settlement
	for _, server := range servers {
		if server.stale(now) && !t.AcceptStaleLeases {
			v.Stale = append(v.Stale, server)
		}
	}
	v.Waiting = v.Stale
	if len(v.Waiting) > 0 || since.IsZero() {
		v.Until = now.Add(Again)
		return v
	}
	v.Until = since.Add(t.Time())
	v.Settled = !now.Before(v.Until)
	return v
}
