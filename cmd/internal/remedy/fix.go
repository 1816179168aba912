package remedy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Writer writes fixes as commands.
type Writer struct {
	// Program is the command line of Godwit as the user types it.
	Program string
	// Cluster are the flags that select the user's cluster, each after a space.
	Cluster string
	// Administrator are the flags with which an administrator selects the same cluster. Each kubectl command that
	// writes has them, because the user may lack the permission.
	Administrator string
	// Spec writes the settings of an upgrade as fields of a spec instead of flags.
	Spec bool
	// upgrade is the object whose spec has the settings of an upgrade; without a name for a reader of any status.
	upgrade godwit.Object
}

// Manager is the Writer for readers of a status, who may use any command line.
var Manager = Writer{Program: "godwit", Spec: true}

// OfUpgrade returns the Writer for readers of the status of a ControllerRevisionUpgrade.
func (w Writer) OfUpgrade(namespace, name string) Writer {
	w.upgrade = godwit.Object{Resource: "controllerrevisionupgrade", Namespace: namespace, Name: name}
	return w
}

// Text returns a fix in words, with its commands.
func (w Writer) Text(f godwit.Fix) string {
	return f.Text(func(s godwit.FixStep) string {
		if len(s.Actions) == 0 {
			return s.Do
		}
		return s.Do + ownersAnswer(s.Actions) + ": " + w.Commands(s.Actions...)
	})
}

// ownersAnswer says what follows a patch of fields that another manager applies.
func ownersAnswer(actions []godwit.Action) string {
	for _, a := range actions {
		p, is := a.(godwit.Patch)
		switch {
		case !is || p.Owner.Manager == "":
		case p.Owner.ServerSide:
			return " (the next server-side apply by " + p.Owner.Manager + " then conflicts, unless it has --force-conflicts)"
		default:
			return " (the next " + p.Owner.Manager + " of the manifest sets it back)"
		}
	}
	return ""
}

// Sentence returns a fix as one or several sentences.
func (w Writer) Sentence(f godwit.Fix) string {
	text := w.Text(f)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}

// Commands returns the commands for some actions. Each runs only if the previous one has succeeded.
func (w Writer) Commands(actions ...godwit.Action) string {
	commands := make([]string, len(actions))
	for i, a := range actions {
		commands[i] = w.command(a)
	}
	return strings.Join(commands, " && ")
}

func (w Writer) command(action godwit.Action) string {
	switch a := action.(type) {
	case godwit.RunMigration:
		return w.run(a)
	case godwit.PlanMigration:
		return w.godwit("crd plan " + a.CRD)
	case godwit.VerifyMigration:
		return w.godwit("crd verify " + a.CRD + " --etcd-servers=URL")
	case godwit.RescueObjects:
		words := "crd rescue " + a.CRD
		if a.WithoutWebhook {
			words += " --conversion=none"
		}
		if a.Undo {
			words += " --undo"
		}
		return w.godwit(words)
	case godwit.GrantPermission:
		return grant(a) // an administrator runs it, with flags of their own
	case godwit.Patch:
		words := "patch " + target(a.Object)
		if a.Subresource != "" {
			words += " --subresource=" + a.Subresource
		}
		return w.administrator(fmt.Sprintf("%s --type=%s -p %s", words, a.Type, quote.Shell(a.Body)))
	case godwit.Annotate:
		return w.administrator("annotate --overwrite " + target(a.Object) + " " + quote.Shell(a.Key+"="+a.Value))
	case godwit.Edit:
		return w.administrator("edit " + target(a.Object))
	case godwit.Delete:
		return w.administrator("delete " + target(a.Object))
	case godwit.Show:
		return w.kubectl("get " + target(a.Object) + flag(" -l ", a.Selector) + output(a.Output))
	case godwit.Request:
		words := "get --raw " + quote.Shell(a.Path)
		if a.Verbose {
			words += " -v=8"
		}
		return w.kubectl(words)
	case godwit.WaitFor:
		return w.kubectl(fmt.Sprintf("wait --for=condition=%s --timeout=60s %s/%s", a.Condition, a.Object.Resource, a.Object.Name))
	case godwit.CheckRelease:
		return w.godwit("crd check -f " + quote.Shell(a.File))
	case godwit.RollBackNames:
		return w.godwit("externalname rollback --resource=" + a.Resource + namespaceFlag(a.Namespace))
	case godwit.TryFile:
		return w.kubectl("apply --server-side --dry-run=server -f " + quote.Shell(a.File))
	}
	return w.revisionCommand(action)
}

// revisionCommand is the command for an action on stored revisions.
func (w Writer) revisionCommand(action godwit.Action) string {
	switch a := action.(type) {
	case godwit.UpgradeRevisions:
		return w.runRevisions(a)
	case godwit.PlanRevisions:
		return w.godwit("revision plan -n " + a.Namespace)
	case godwit.RollBackRevision:
		return w.rollback(a)
	case godwit.FixRevision:
		return w.fixRevision(a)
	}
	return fmt.Sprintf("%+v", action)
}

func (w Writer) godwit(words string) string  { return w.Program + " " + words + w.Cluster }
func (w Writer) kubectl(words string) string { return "kubectl " + words + w.Cluster }

func (w Writer) administrator(words string) string { return "kubectl " + words + w.Administrator }

func (w Writer) run(a godwit.RunMigration) string {
	if w.Spec && a.AcceptLosses != "" {
		return w.accept(a.CRD, "acceptLosses", a.AcceptLosses)
	}
	if w.Spec && a.AcceptChanges != "" {
		return w.accept(a.CRD, "acceptChanges", a.AcceptChanges)
	}
	words := "crd run " + a.CRD
	if a.AcceptDenials {
		words += " --accept-denials"
	}
	if a.AcceptLosses != "" {
		words += " --accept-loss=" + quote.Shell(a.AcceptLosses)
	}
	if a.AcceptChanges != "" {
		words += " --accept-change=" + quote.Shell(a.AcceptChanges)
	}
	if a.Write != "" {
		words += " --write=" + a.Write
	}
	if a.OwnerReferences != "" {
		words += " --owner-references=" + a.OwnerReferences
	}
	if a.DryRun {
		words += " --dry-run=server"
	}
	return w.godwit(words)
}

// accept is the command for a user of the manager, which runs the migration by itself.
func (w Writer) accept(crd, field, paths string) string {
	list, err := json.Marshal(strings.Split(paths, ","))
	if err != nil {
		return err.Error() // of strings, it does not occur
	}
	return w.administrator(fmt.Sprintf("patch crdmigration %s --type=merge -p %s", crd, quote.Shell(fmt.Sprintf(`{"spec": {%q: %s}}`, field, list))))
}

// namespaceFlag selects one namespace, or all.
func namespaceFlag(namespace string) string {
	if namespace == "" {
		return " --all-namespaces"
	}
	return " --namespace=" + namespace
}

// target returns the kubectl arguments of an object.
func target(o godwit.Object) string {
	return o.Resource + flag(" -n ", o.Namespace) + flag(" ", o.Name)
}

// output returns the output flag. It quotes only the template, as kubectl's help does.
func output(format string) string {
	name, template, ok := strings.Cut(format, "=")
	if !ok {
		return flag(" -o ", format)
	}
	return " -o " + name + "=" + quote.Shell(template)
}

// flag returns a flag with a value, or empty for an empty value.
func flag(name, value string) string {
	if value == "" {
		return ""
	}
	return name + quote.Shell(value)
}

// grant returns the commands that create a role with exactly this permission and bind it to the user. The role's name
// contains the user's name, so commands for two users do not conflict.
func grant(g godwit.GrantPermission) string {
	user := g.User
	if user == "" {
		user = "USER"
	}
	resource := schema.GroupResource{Group: g.Group, Resource: g.Resource}
	role := strings.Map(nameRune, strings.ToLower(strings.Join(slices.DeleteFunc(
		[]string{"godwit", g.Verb, resource.String(), g.Name, user}, func(s string) bool { return s == "" }), "-")))
	kind, scope := "clusterrole", ""
	if g.Namespace != "" {
		kind, scope = "role", " --namespace="+g.Namespace
	}
	rule := fmt.Sprintf("--verb=%s --resource=%s", g.Verb, kube.ResourceArgument(resource))
	if g.Name != "" {
		rule += " --resource-name=" + g.Name
	}
	subject := "--user=" + quote.Shell(user)
	if sa, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		subject = "--serviceaccount=" + sa
	}
	return fmt.Sprintf("kubectl create %[1]s %[2]s%[3]s %[4]s && kubectl create %[1]sbinding %[2]s%[3]s --%[1]s=%[2]s %[5]s",
		kind, role, scope, rule, subject)
}

// nameRune keeps the characters that the name of any object may have.
func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// runRevisions is the command for an upgrade of a namespace, or for the settings of the upgrade where the manager runs it.
func (w Writer) runRevisions(a godwit.UpgradeRevisions) string {
	losses := ""
	if a.AllowLosses {
		losses = "Allow"
	}
	switch {
	case w.Spec && a.TargetVersion != "": // it can't be changed
		return "delete the upgrade, or the trigger that created it, and create another with `targetVersion: " + a.TargetVersion + "` in its spec"
	case w.Spec && a.OnRunning != "":
		return w.setting("onRunning", a.OnRunning)
	case w.Spec && losses != "":
		return w.setting("lossPolicy", losses)
	}
	return w.godwit("revision run -n " + a.Namespace + flag(" --target-version=", a.TargetVersion) +
		flag(" --on-running=", a.OnRunning) + flag(" --loss-policy=", losses))
}

// setting is the command for a setting of the upgrade that the manager runs.
func (w Writer) setting(field, value string) string {
	if w.upgrade.Name == "" {
		return fmt.Sprintf("set `%s: %s` in the spec of the upgrade or its trigger", field, value)
	}
	return w.command(godwit.Patch{Object: w.upgrade, Type: godwit.PatchMerge, Body: fmt.Sprintf(`{"spec": {%q: %q}}`, field, value)})
}

// rollback is the command for a rollback of one revision, or for the setting of the upgrade that the manager rolls back.
func (w Writer) rollback(a godwit.RollBackRevision) string {
	if w.upgrade.Name != "" && a.OnRunning != "" {
		return w.setting("onRunning", a.OnRunning)
	}
	return w.godwit("revision rollback " + a.Name + " -n " + a.Namespace + flag(" --on-running=", a.OnRunning))
}

// fixRevision returns the command that corrects a revision. kubectl can't patch a revision whose data is not compact
// JSON: the API server encodes the data again, and refuses the change.
func (w Writer) fixRevision(a godwit.FixRevision) string {
	words := "revision fix " + a.Name + " -n " + a.Namespace
	var labels strings.Builder
	for _, label := range a.Labels {
		value := label[strings.LastIndexAny(label, "-/")+1:]
		labels.WriteString(" --label=" + label + "=" + strings.ToUpper(value)) // only the user knows the value
	}
	return w.Program + " " + words + w.Cluster + flag(" --owner=", a.Owner) + labels.String() + flag(" --replacement=", a.Replacement)
}
