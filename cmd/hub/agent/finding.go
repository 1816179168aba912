package agent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
)

// findings are what passes find, beside their results. The zero value is ready.
type findings struct {
	mutex        sync.Mutex
	denied       []string
	certificates map[string]time.Time
	warnings     map[string][]hub.Warning
}

// setDenied sets the requests that the migration has denied, and reports whether that is news.
func (f *findings) setDenied(requests []string) (news bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	slices.Sort(requests)
	news = !slices.Equal(f.denied, requests)
	f.denied = requests
	return news
}

// addCertificate adds the certificate of a cluster.
func (f *findings) addCertificate(cluster string, expiry time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.certificates == nil {
		f.certificates = map[string]time.Time{}
	}
	f.certificates[cluster] = expiry
}

// setWarnings sets what may keep the migration of a cluster from its end.
func (f *findings) setWarnings(cluster string, found []godwit.Finding) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.warnings == nil {
		f.warnings = map[string][]hub.Warning{}
	}
	f.warnings[cluster] = nil
	for _, one := range found {
		f.warnings[cluster] = append(f.warnings[cluster], hub.Warning{Cluster: cluster, Reason: one.Reason.Name, Message: one.Message})
	}
}

// addTo adds the findings to a report, the warnings of the first clusters.
func (f *findings) addTo(r *hub.Report) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r.DeniedRequests, r.Certificates, r.Warnings = slices.Clone(f.denied), maps.Clone(f.certificates), nil
	for _, name := range slices.Sorted(maps.Keys(f.warnings)) {
		r.Warnings = append(r.Warnings, f.warnings[name]...)
	}
	r.Warnings = r.Warnings[:min(len(r.Warnings), hub.MaxWarnings)]
}
