package crdmigrator

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

const (
	// DefaultSettle is 15 s, for a server's watch to bring the change, and
	// 60 s, the API server's request timeout, for what was begun before it.
	DefaultSettle = 75 * time.Second

	// watchShare is the part of the settle time that belongs to the watch.
	watchShare = 5

	// staleAfter is one and a half of the 10 s at which API servers renew
	// their identity leases.
	staleAfter = 15 * time.Second
)

func (p Policy) settle() time.Duration {
	switch {
	case p.Settle < 0:
		return 0
	case p.Settle == 0:
		return DefaultSettle
	}
	return p.Settle
}

func (p Policy) watchLag() time.Duration { return p.settle() / watchShare }

// changedBefore is an upper bound of when the storage version was last set: the
// newest time at which an owner of a part of the spec wrote the CRD,
// and a second, since these times are cut to it. Writers of metadata alone, as
// our own checkpoint is, do not count.
func changedBefore(crd *apiextensionsv1.CustomResourceDefinition) (time.Time, bool) {
	var newest time.Time
	for _, e := range specEntries(crd) {
		if e.Time == nil {
			return time.Time{}, false // it may be the newest
		}
		if e.Time.After(newest) {
			newest = e.Time.Time
		}
	}
	return newest.Add(time.Second), !newest.IsZero()
}

func specEntries(crd *apiextensionsv1.CustomResourceDefinition) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, e := range crd.ManagedFields {
		if e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			entries = append(entries, e)
		}
	}
	return entries
}

func specManagers(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var managers []string
	for _, e := range specEntries(crd) {
		managers = append(managers, fmt.Sprintf("%s (%s)", e.Manager, e.Operation))
	}
	return managers
}

// stale means that a renewal is overdue, so this is not a server between two renewals.
func (s Server) stale(now time.Time) bool { return now.Sub(s.Renewed) > staleAfter }

// leaseHistory is what one process has seen of the API servers' leases since one
// change of a CRD.
type leaseHistory struct {
	spec    kube.Generation
	first   time.Time            // our first look
	last    time.Time            // our last one
	adopted time.Time            // since when every server we wait for has adopted; zero: not yet
	late    map[string]time.Time // servers seen with a stale lease, and when they were back; zero: not yet
}

// settlement is the verdict on one look.
type settlement struct {
	settled bool
	until   time.Time
	waiting []Server // not adopted yet
	stale   []Server // the part of waiting whose renewal is overdue
}

// look takes in one reading of the servers and says whether writing may begin.
// A fresh renewal alone proves nothing about a server whose lease was stale: it renews
// first and finishes its queued writes, at the old version, afterwards. From our
// first sight of it the settle time therefore runs anew.
func (s *leaseHistory) look(f Facts, p Policy) settlement {
	if s.first.IsZero() {
		s.first, s.late = f.Now, map[string]time.Time{}
	}
	if p.SettleFromSight && len(f.Servers) > 0 && f.Now.Sub(s.last) > staleAfter {
		s.adopted = time.Time{} // a lease may have been stale meanwhile
	}
	s.last = f.Now
	// The definition was read before our first look, by a clock that is cut to
	// the second: a later write at this generation changed no spec.
	changed := s.first.Add(time.Second)
	if t, ok := changedBefore(f.CRD); ok && t.Before(changed) {
		changed = t
	}
	var v settlement
	for _, server := range f.Servers {
		switch {
		case s.hasAdopted(server, changed, f.Now, p):
			if back, late := s.late[server.Name]; late && back.IsZero() {
				s.late[server.Name], s.adopted = f.Now, time.Time{}
			}
			continue
		case server.stale(f.Now) && p.AcceptStaleLeases:
			continue
		case server.stale(f.Now):
			s.late[server.Name] = time.Time{}
			v.stale = append(v.stale, server)
		}
		v.waiting = append(v.waiting, server)
	}
	if len(v.waiting) > 0 {
		s.adopted = time.Time{}
		v.until = f.Now.Add(lookAgain)
		return v
	}
	if s.adopted.IsZero() {
		s.adopted = f.Now
	}
	from := changed
	if len(s.late) > 0 || p.SettleFromSight {
		from = s.adopted
	}
	v.until = from.Add(p.settle())
	v.settled = !f.Now.Before(v.until)
	return v
}

// hasAdopted reports whether a server has adopted the change and still lives, or
// lived until all that it had begun before was over: one that stops in between
// keeps old requests and finishes them when it goes on.
func (s *leaseHistory) hasAdopted(server Server, changed, now time.Time, p Policy) bool {
	if server.Renewed.Before(changed.Add(p.watchLag())) {
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
	return !server.Renewed.Before(from.Add(p.settle()))
}

// NotSettledError reports that nothing may be written yet. Whoever runs a
// control loop requeues after Wait; another caller runs again at Until, and
// better every few seconds: a lease that becomes stale meanwhile is only noticed
// by looking.
type NotSettledError struct {
	// Until is the API server's time before which nothing is written.
	Until time.Time
	// Wait is how long that is from now, by the API server's clock.
	Wait time.Duration
	// Servers have not adopted the storage version as far as their leases show.
	Servers []Server
	// Stale are those of them whose lease is stale.
	Stale []Server
}

func (e *NotSettledError) Error() string {
	switch {
	case len(e.Stale) > 0:
		return fmt.Sprintf("not settled: API server %s has a stale lease and may still write the old version", join(e.Stale))
	case len(e.Servers) > 0:
		return fmt.Sprintf("not settled: API server %s has not shown yet that it adopted the storage version", join(e.Servers))
	}
	return fmt.Sprintf("not settled: requests begun before the storage version changed may still be under way for %s",
		max(e.Wait.Round(time.Second), time.Second))
}

func join(servers []Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
