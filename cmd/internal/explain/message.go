package explain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/reason"
)

// message is an error message of another program, and the reasons with which Godwit names its causes.
type message struct {
	words   *regexp.Regexp
	reasons []named
}

// named is a reason of one subject: several subjects share some names.
type named struct {
	subject reason.Subject
	name    string
}

// messages are those of the API server, of Helm, of KubeVirt and of etcd. The first one that matches applies.
var messages = []message{
	{regexp.MustCompile(`unable to build kubernetes objects`), []named{{reason.Leftover, "HelmReleaseNotServed"}}},
	{regexp.MustCompile(`missing from spec\.versions|must remain in spec\.versions|status\.storedVersions`), []named{{reason.Release, "StoredVersionRemoved"}}},
	{regexp.MustCompile(`convert CR from an invalid group/version`), []named{{reason.CRD, "UnreadableObjects"}, {reason.CRD, "StoredVersionNotInSpec"}}},
	{regexp.MustCompile(`convert CR to an invalid group/version|field not declared in schema`), []named{{reason.Release, "ManagedFieldsRemovedVersion"}}},
	{regexp.MustCompile(`conversion webhook for|no endpoints available for service`), []named{{reason.Leftover, "ConversionServiceNotFound"}, {reason.CRD, "WebhookUnavailable"}}},
	{regexp.MustCompile(`FailedFind(Instancetype|Preference)|failed to decode object in ControllerRevision`), []named{{reason.Revision, "Unreadable"}, {reason.Revision, "SourceGone"}}},
	{regexp.MustCompile(`no matches for kind|could not find the requested resource`), []named{{reason.Leftover, "LastAppliedNotServed"}, {reason.CRD, "NotServed"}}},
	{regexp.MustCompile(`database space exceeded`), []named{{reason.CRD, "EtcdFull"}}},
	{regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`), []named{{reason.CRD, "ObjectTooLarge"}}},
	{regexp.MustCompile(`no matching key was found|no matching prefix found`), []named{{reason.CRD, "EncryptionKeyMissing"}}},
}

// isMessage reports whether an argument is a message: the name of a reason is one word.
func isMessage(arg string) bool { return strings.ContainsAny(strings.TrimSpace(arg), " :\"") }

// findMessage returns the reasons with which Godwit names the causes of a message.
func findMessage(text string) []reason.Explanation {
	at := slices.IndexFunc(messages, func(m message) bool { return m.words.MatchString(text) })
	if at < 0 {
		return nil
	}
	var all []reason.Explanation
	for _, n := range messages[at].reasons {
		for _, e := range reason.Find(n.name) {
			if e.Subject == string(n.subject) {
				all = append(all, e)
			}
		}
	}
	return all
}
