package serving

import (
	"regexp"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Labels of a lease, as Kubernetes recommends them. They describe the process that holds the lease.
const (
	partOfLabel    = "app.kubernetes.io/part-of"
	versionLabel   = "app.kubernetes.io/version"
	componentLabel = "app.kubernetes.io/component"
)

// LeaseSelector selects the leases of managers and agents.
const LeaseSelector = partOfLabel + "=godwit," + versionLabel

// leasePrefix is in the names of all leases.
const leasePrefix = "godwit-"

func (o Options) labels(lease string) map[string]string {
	return map[string]string{
		partOfLabel: "godwit", versionLabel: labelValue(o.Version), componentLabel: strings.TrimPrefix(lease, leasePrefix),
	}
}

// Process returns the component of Godwit that a lease elects, and the version of the process that has held it last.
func Process(lease *coordinationv1.Lease) (component, version string) {
	return lease.Labels[componentLabel], lease.Labels[versionLabel]
}

// unlabelled matches the characters that a label can't have, such as those of "(devel)" and "+dirty".
var unlabelled = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// labelValue returns a version as a valid label value.
func labelValue(version string) string {
	const longest = 63
	value := unlabelled.ReplaceAllString(version, "_")
	return strings.Trim(value[:min(len(value), longest)], "._-")
}
