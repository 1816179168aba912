package doctor

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// checkWebhooks finds rules that name the resource of a CRD at versions that are not served.
func checkWebhooks(f Facts, s Subject) []Finding {
	var findings []Finding
	for i := range f.Webhooks {
		c := &f.Webhooks[i]
		for w := range c.Webhooks {
			webhook, at := &c.Webhooks[w], fmt.Sprintf("/webhooks/%d", w)
			findings = append(findings, s.checkRules(ruleList{
				reason:  ReasonWebhookNotServed,
				name:    fmt.Sprintf("webhook %s of %s %s", webhook.Name, c.Resource, c.Name),
				effect:  "the API server stops calling it for " + s.Owners.CRD,
				knows:   nameInWebhook,
				object:  applied{godwit.Object{Resource: c.Resource, Name: c.Name}, kube.OwnerOf(c, "rules")},
				path:    at + "/rules",
				guards:  []step{test(at+"/name", webhook.Name)},
				entries: webhook.Rules,
			})...)
		}
	}
	return findings
}
