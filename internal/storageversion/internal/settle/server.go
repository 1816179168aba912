package settle

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Server is an API server as its identity lease shows it.
type Server struct {
	// Name is the lease's name in kube-system.
	Name string
	// Host is the server's host name, where the lease says it.
	Host string
	// Renewed is when the server last renewed its lease.
	Renewed time.Time
}

func (s Server) String() string {
	if s.Host == "" {
		return s.Name
	}
	return fmt.Sprintf("%s (host %s)", s.Name, s.Host)
}

// ServersOf are the API servers with a valid identity lease.
func ServersOf(leases []coordinationv1.Lease, now time.Time) []Server {
	var servers []Server
	for _, l := range leases {
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		valid := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
		if l.Spec.RenewTime.Add(valid).Before(now) {
			continue
		}
		servers = append(servers, Server{
			Name: l.Name, Host: l.Labels["kubernetes.io/hostname"], Renewed: l.Spec.RenewTime.Time,
		})
	}
	return servers
}
