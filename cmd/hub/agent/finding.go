package agent

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// findings are what the passes of the target hub find, beside their results. The zero value is ready.
type findings struct {
	mutex        sync.Mutex
	denied       []string
	certificates map[string]time.Time
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

// get returns the findings for a report.
func (f *findings) get() (denied []string, certificates map[string]time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.denied), maps.Clone(f.certificates)
}
