package cluster

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// requestOptions are the flags of a command that asks the manager to change a migration.
type requestOptions struct {
	*frame.App
	hubFlags
	change frame.ChangeFlags
	watch  bool
	output frame.Output
}

func (o *requestOptions) addTo(c *cobra.Command) {
	o.change.AddYesTo(c)
	frame.AddWatch(c, &o.watch)
	o.change.AddTimeoutTo(c)
	addManagerNamespace(c, &o.managerNamespace)
	o.addContextsTo(o.App, c)
	o.endsWithoutTarget = true
	o.output.AddTo(c, clusterreport.NoMigration("", ""))
}

// request is a planned change of a migration, in one write.
type request struct {
	*requestOptions
	connection *connection
	migration  migration
	err        error
}

// patch writes a change, and waits for the answer even after an interruption. from makes the patch from the migration before.
func (r *request) patch(ctx context.Context, change func(*api.ManagedClusterMigration), from func(client.Object) client.Patch) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	o := r.migration.ManagedClusterMigration
	before := o.DeepCopy()
	change(o)
	if err := r.connection.client.Patch(bounded, o, from(before)); err != nil {
		r.err = r.connection.explain(bounded, err)
	}
}
