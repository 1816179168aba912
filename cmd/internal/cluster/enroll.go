package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

type enrollOptions struct {
	*frame.App
	key, hubContext                  string
	managerNamespace, agentNamespace string
	sameHub                          bool
	change                           frame.ChangeFlags
}

func enrollCommand(a *frame.App) *cobra.Command {
	o := &enrollOptions{App: a}
	c := &cobra.Command{
		Use:   "enroll HUB {--key=KEY | --hub-context=CONTEXT}",
		Short: "Make the agent of a hub known to the manager, by its public key",
		Long: "Write the public key of a hub's agent into ConfigMap " + manager.EnrolledHubs + " of the manager. The manager\n" +
			"believes messages of the hub only if they are signed with that key.\n\n" +
			"The command shows the fingerprint of the key and asks. The agent logs the same fingerprint when it\n" +
			"starts: compare the two if the key has travelled. A user who can write the ConfigMap can act as any hub.\n\n" +
			"--hub-context reads the key from Secret " + identity.Secret + " of the hub. Without access to it, have an\n" +
			"administrator of the hub print the key, and give it with --key:\n" +
			"  " + printKey(permission.AgentNamespace) + "\n\n" +
			"A migration under way takes part with the key that was enrolled when it began. With another key,\n" +
			"the hub would get nothing of it, so the command refuses. --same-hub says that the hub has a new key,\n" +
			"with which its migrations continue.\n\n" +
			"Exit codes: 0 the hub is enrolled; 3 refused, and nothing written; 2 error; 130 interrupted.",
		Example: "  # With access to the hub\n" +
			"  " + a.Program + " cluster enroll hub1 --hub-context=hub1\n\n" +
			"  # With a key that the administrator of the hub has sent\n" +
			"  " + a.Program + " cluster enroll hub1 --key=\"$KEY\"\n\n" +
			"  # With a new key of the same hub, while it has migrations\n" +
			"  " + a.Program + " cluster enroll hub1 --hub-context=hub1 --same-hub",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return frame.Usagef("specify one HUB: the name of its ManagedCluster on the global hub")
			}
			return nil
		},
		ValidArgsFunction: frame.CompleteFirst(completeHubs(a)),
		RunE: func(c *cobra.Command, args []string) error {
			if (o.key == "") == (o.hubContext == "") {
				return frame.Usagef("specify --key=KEY or --hub-context=CONTEXT")
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, args[0]) })
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.key, "key", "", "public `key` of the agent, in base64")
	_ = c.RegisterFlagCompletionFunc("key", cobra.NoFileCompletions)
	addContext(a, c, &o.hubContext, "hub-context", "`context` of the kubeconfig for the hub, to read the key from its Secret")
	flags.BoolVar(&o.sameHub, "same-hub", false, "the key is a new key of the hub that is enrolled: its migrations continue with it")
	addManagerNamespace(c, &o.managerNamespace)
	addAgentNamespace(c, &o.agentNamespace)
	o.change.AddYesTo(c)
	return c
}

// printKey returns the command with which an administrator of a hub prints the key of its agent.
func printKey(namespace string) string {
	return "kubectl -n " + namespace + " get secret " + identity.Secret + " -o go-template='{{.data." + identity.Public + " | base64decode}}'"
}

// enrollment is a key to write.
type enrollment struct {
	*enrollOptions
	connection *connection
	hub        string
	key        message.IdentityKey
	hubs       *corev1.ConfigMap
	absent     bool // the ConfigMap does not exist
	err        error
}

// plan reads the key and the ConfigMap of the manager, and prints the fingerprint for the user to compare.
func (o *enrollOptions) plan(ctx context.Context, hub string) (frame.Change, error) {
	c, err := dial(ctx, o.App, clusterpermission.Enroll, permission.Scope{Installation: o.managerNamespace})
	if err != nil {
		return nil, err
	}
	if err := c.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	err = c.client.Get(ctx, client.ObjectKey{Name: hub}, &clusterv1.ManagedCluster{})
	if apierrors.IsNotFound(err) {
		return nil, c.unknownHub(ctx, hub)
	}
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	e := &enrollment{enrollOptions: o, connection: c, hub: hub, hubs: &corev1.ConfigMap{}}
	if e.key, err = o.readKey(ctx, hub); err != nil {
		return nil, err
	}
	err = c.client.Get(ctx, o.configMap(), e.hubs)
	if e.absent = apierrors.IsNotFound(err); err != nil && !e.absent {
		return nil, c.explain(ctx, err)
	}
	migrations, replaces, err := e.withOtherKeys(ctx)
	if err != nil {
		return nil, err
	}
	if len(migrations) > 0 && !o.sameHub {
		return nil, e.refuseOtherHub(migrations, replaces)
	}
	known, enrolled := e.hubs.Data[hub]
	if known == identity.Format(e.key) && len(migrations) == 0 {
		o.Console.Printf("hub %s is enrolled with this key: %s; nothing was written\n", hub, identity.Fingerprint(e.key))
		return nil, nil //nolint:nilnil // nothing is to be done
	}
	o.Console.Printf("hub:         %s\nfingerprint: %s\n", hub, identity.Fingerprint(e.key))
	if enrolled {
		o.Console.Printf("replaces:    %s\n", fingerprintOf(known))
	}
	for _, m := range migrations {
		o.Console.Printf("continues:   managedclustermigration %s\n", m)
	}
	return e, manager.SetReplacement(e.hubs, hub, e.key, replaces)
}

// withOtherKeys returns the migrations under way in which the hub takes part with another key, unless it is known that the key
// replaces that one, and the keys of all migrations under way that it replaces.
func (e *enrollment) withOtherKeys(ctx context.Context) (migrations []client.ObjectKey, replaces []string, err error) {
	all, err := e.connection.list(ctx, "")
	if meta.IsNoMatchError(err) {
		return nil, nil, nil // no manager can run
	}
	if err != nil {
		return nil, nil, e.connection.explain(ctx, err)
	}
	for i := range all {
		m := &all[i]
		party := manager.PartyOf(m, e.hub)
		if party == "" {
			continue
		}
		known := manager.KeyOf(m, party)
		if m.Status.CompletionTime != nil || known == nil || known.Fingerprint == identity.Fingerprint(e.key) {
			continue
		}
		replaces = append(replaces, known.Fingerprint)
		continues, err := manager.Replaces(e.hubs, e.hub, e.key, known.Fingerprint)
		if err != nil {
			return nil, nil, err
		}
		if !continues {
			migrations = append(migrations, client.ObjectKeyFromObject(m))
		}
	}
	slices.Sort(replaces)
	return migrations, slices.Compact(replaces), nil
}

// refuseOtherHub says which migrations would stop, and what to do.
func (e *enrollment) refuseOtherHub(migrations []client.ObjectKey, keys []string) error {
	names := make([]string, len(migrations))
	for i, m := range migrations {
		names[i] = m.String()
	}
	return frame.Refuse(fmt.Errorf("hub %s takes part in managedclustermigration %s with key %s, and with key %s would get nothing more of it: nothing was written; "+
		"if the hub has a new key, give --same-hub; if this is another hub, end the migration first: %s cluster rollback %s -n %s, or delete it if the former hub never answers again",
		e.hub, strings.Join(names, ", "), strings.Join(keys, ", "), identity.Fingerprint(e.key), e.Program, migrations[0].Name, migrations[0].Namespace))
}

// configMap names the ConfigMap of the manager that has the keys.
func (o *enrollOptions) configMap() client.ObjectKey {
	return client.ObjectKey{Namespace: o.managerNamespace, Name: manager.EnrolledHubs}
}

// unknownHub returns the error for a hub that has no ManagedCluster.
func (c *connection) unknownHub(ctx context.Context, hub string) error {
	message := fmt.Sprintf("ManagedCluster %s not found on %s", hub, c.Where())
	known, _ := c.managedClusters(ctx) // without them nothing is suggested
	return notFound(message, frame.DidYouMean(frame.Similar(hub, known), "import the hub, or list the names: kubectl get managedclusters"))
}

// readKey reads the key of the flag, or of the Secret on the hub.
func (o *enrollOptions) readKey(ctx context.Context, hub string) (message.IdentityKey, error) {
	if o.key != "" {
		key, err := identity.Parse(o.key)
		if err != nil {
			return key, frame.Usagef("invalid argument for \"--key\": %v; the administrator of the hub prints the key: %s", err, printKey(o.agentNamespace))
		}
		return key, nil
	}
	none := message.IdentityKey{}
	c, err := dial(ctx, o.InContext(o.hubContext), clusterpermission.Enroll, permission.Scope{Installation: o.agentNamespace})
	if err != nil {
		return none, err
	}
	secret := &corev1.Secret{}
	at := client.ObjectKey{Namespace: o.agentNamespace, Name: identity.Secret}
	err = c.client.Get(ctx, at, secret)
	switch {
	case apierrors.IsNotFound(err):
		return none, notFound(fmt.Sprintf("Secret %s not found on %s: the agent makes it at its first start", at, c.Where()),
			"see whether the agent runs, or give its namespace with --agent-namespace")
	case apierrors.IsForbidden(err):
		return none, &frame.ActionableError{Reason: render.ReasonForbidden, Message: frame.OneLine(err), Cause: err,
			Remedy: "have an administrator of the hub print the key, and give it with --key: " + printKey(o.agentNamespace)}
	case err != nil:
		return none, c.Explain(ctx, err)
	}
	if owner := identity.OwnerOf(secret); owner.Name != hub {
		return none, frame.Refuse(fmt.Errorf("secret %s on %s is the identity of %s, and not of the agent of hub %s: nothing was written; give the context of hub %s, and the namespace of its agent with --agent-namespace",
			at, c.Where(), owner, hub, hub))
	}
	key, err := identity.Parse(string(secret.Data[identity.Public]))
	if err != nil {
		return none, fmt.Errorf("key %s of secret %s on %s: %w; delete the Secret and restart the agent, which makes another one", identity.Public, at, c.Where(), err)
	}
	return key, nil
}

// Question implements frame.Change.
func (e *enrollment) Question() (string, error) {
	return fmt.Sprintf("The manager on %s will accept every message that is signed with this key as one of hub %s. Enroll it?", e.connection.Where(), e.hub), nil
}

// Run implements frame.Change. It sends one request, and waits for the answer even after an interruption.
func (e *enrollment) Run(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	at := e.configMap()
	if e.hubs.Data == nil {
		e.hubs.Data = map[string]string{}
	}
	e.hubs.Data[e.hub] = identity.Format(e.key)
	var err error
	if e.absent {
		e.hubs.ObjectMeta = metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}
		err = e.connection.client.Create(bounded, e.hubs)
	} else {
		err = e.connection.client.Update(bounded, e.hubs)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		e.err = frame.Refuse(fmt.Errorf("another client has changed ConfigMap %s at the same time: nothing was written; run the command again", at))
	case apierrors.IsNotFound(err):
		e.err = notFound(fmt.Sprintf("namespace %s not found on %s", at.Namespace, e.connection.Where()), "give the namespace of the manager with --manager-namespace")
	case err != nil:
		e.err = e.connection.explain(bounded, err)
	}
}

// End implements frame.Change.
func (e *enrollment) End(context.Context) error {
	if e.err == nil {
		e.Console.Printf("hub %s is enrolled\n", e.hub)
	}
	return e.err
}

// fingerprintOf returns the fingerprint of an enrolled key.
func fingerprintOf(text string) string {
	key, err := identity.Parse(text)
	if err != nil {
		return "a text that is not a key"
	}
	return identity.Fingerprint(key)
}
