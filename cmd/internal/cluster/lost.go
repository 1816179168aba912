package cluster

import (
	"context"
	"fmt"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/rejoin"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// lostTargetHelp describes a request without --to-context.
const lostTargetHelp = "If the target hub of `cluster move` never answers again, give --from-context alone. The clusters that still\n" +
	"know the source hub return, and the command ends the migration without the others: it says what is left of\n" +
	"them on which hub. The source hub keeps their objects. It ends within two timeouts of a phase, also with a\n" +
	"cluster that does not return."

// losesTarget reports whether a command ends a migration without its target hub.
func (c *connection) losesTarget() bool { return c.pair != nil && c.pair.to == nil }

// checkLost refuses to end a migration without a target hub that answers from here.
func (c *connection) checkLost(ctx context.Context, a *frame.App, m migration, words string) error {
	if !c.losesTarget() {
		return nil
	}
	address, err := direct.AddressIn(m.ManagedClusterMigration)
	if err != nil {
		return nil //nolint:nilerr // without an address nothing says that the hub answers
	}
	kubeconfig, err := cluster.Kubeconfig(address.URL, address.CABundle, "")
	if err != nil || !rejoin.Answers(ctx, kubeconfig) {
		return nil //nolint:nilerr // the same
	}
	return frame.Refuse(fmt.Errorf("hub %s answers at %s from here, so it is not lost: nothing was written; with its context, the migration ends there too: %s",
		m.Spec.To, address.URL, a.Hint("cluster "+words+c.pair.flags(c.scope.Namespace)+" --to-context=CONTEXT")))
}

// withoutTarget is a part of a question: what follows from a target hub that is lost.
func (c *connection) withoutTarget(m migration) string {
	if !c.losesTarget() {
		return ""
	}
	return fmt.Sprintf("Hub %s is not asked, and what the migration has created stays there. The clusters that still know hub %s return to it.\n", m.Spec.To, m.Spec.From)
}
