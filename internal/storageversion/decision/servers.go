package decision

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// checkAnswering blocks if another server answers for the objects: what it lists are not the objects of the CRD.
func checkAnswering(f Facts, _ Policy) []godwit.Finding {
	if f.Discovery == nil || f.CRD.DeletionTimestamp != nil || f.Discovery.Answering(f.CRD) != AnsweredByOther {
		return nil
	}
	return []godwit.Finding{OtherServerAnswers(f.CRD, *f.Discovery)}
}

func checkServers(f Facts, p Policy) []godwit.Finding {
	if f.Checkpoint.Holds(f.CRD, p.Terms()) {
		return nil
	}
	stale := new(settle.History).Observe(f.CRD, f.Servers, f.Now, p.Terms()).Stale
	blockers := StaleLeases(stale, f.Servers, f.Now)
	for i := range blockers {
		if blockers[i].Reason == ReasonServerLeaseStale {
			blockers[i].Fix = replaceServer(stale[i].Name, p.Terms().Time().String())
		}
	}
	return blockers
}

// checkEndpoints blocks if API servers have no lease of their own. API servers with one host name share a lease, so that a fresh lease
// says nothing about each of them.
func checkEndpoints(f Facts, p Policy) []godwit.Finding {
	if !f.ServersRead || len(f.Servers) == 0 || f.Endpoints <= len(f.Servers) || p.AcceptStaleLeases || f.Checkpoint.Holds(f.CRD, p.Terms()) {
		return nil
	}
	return blocker(ReasonServersWithoutLease,
		fmt.Sprintf("the service kubernetes has %d endpoints, and %d API servers have an identity lease: whether the others use storage version %s of %s is not known; API servers with the same host name share a lease",
			f.Endpoints, len(f.Servers), kube.StorageVersion(f.CRD), f.CRD.Name),
		giveOwnLeases())
}

// leaseless warns if the API servers have no identity leases. Without leases, a run does not know an API
// server that has not adopted the storage version, and can't wait for it.
func leaseless(f Facts, p Policy) []godwit.Finding {
	if !f.ServersRead || len(f.Servers) > 0 || kube.Trimmed(f.CRD) || p.Skips(StorageVersionMigrationPhase) {
		return nil
	}
	return []godwit.Finding{{
		Severity: godwit.Warns,
		Reason:   ReasonNoIdentityLeases,
		Message: fmt.Sprintf("no API server has an identity lease in kube-system: only the settle time, %s, keeps a run from writing before each API server stores %s",
			p.Terms().Time(), kube.StorageVersion(f.CRD)),
		Fix: seeServersHealthy(),
	}}
}
