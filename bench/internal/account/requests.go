package account

import (
	"context"
	"fmt"
	"maps"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// flowSchema is the prefix of the schemas that count.
const flowSchema = "bench-godwit-"

// Requests counts what the ServiceAccount [Godwit] asks of the API server, by verb. The API server itself counts: by a flow
// schema for each verb of that user, which does not change how a request is served. A proxy would delay each request.
type Requests struct{ client rest.Interface }

// verbs are those of the API; "other" is discovery.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// CountRequests starts to count.
func CountRequests(ctx context.Context, admin *rest.Config) (*Requests, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	schemas := clients.FlowcontrolV1().FlowSchemas()
	for _, verb := range verbs {
		rule := flowcontrolv1.PolicyRulesWithSubjects{ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{verb}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
		}}}
		if _, err := schemas.Create(ctx, schemaFor(verb, rule), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	rule := flowcontrolv1.PolicyRulesWithSubjects{NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}}
	if _, err := schemas.Create(ctx, schemaFor("other", rule), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return &Requests{client: clients.Discovery().RESTClient()}, nil
}

func schemaFor(name string, rule flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	rule.Subjects = []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: userOf(Godwit)}}}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: flowSchema + name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			// The level is the default of ServiceAccounts; the schema that gives it to them has precedence 9000.
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-low"},
			MatchingPrecedence:         500,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rule},
		},
	}
}

// Count has numbers of requests by verb, or by another name.
type Count map[string]int64

// Total returns the number of requests of all verbs.
func (c Count) Total() int64 {
	var total int64
	for _, n := range c {
		total += n
	}
	return total
}

// Since returns the difference to an earlier count.
func (c Count) Since(earlier Count) Count {
	later := maps.Clone(c)
	for verb, n := range earlier {
		later[verb] -= n
	}
	maps.DeleteFunc(later, func(_ string, n int64) bool { return n == 0 })
	return later
}

// Read returns what has been counted so far.
func (r *Requests) Read(ctx context.Context) (Count, error) {
	m, err := r.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return countRequests(m), nil
}

// Writes returns how many writes of objects of an API group have been served so far, of any user. A write that failed or was
// a dry run does not count; one that changed nothing does.
func (r *Requests) Writes(ctx context.Context, group string) (int64, error) {
	m, err := r.metrics(ctx)
	if err != nil {
		return 0, err
	}
	return countWrites(m, group), nil
}

func (r *Requests) metrics(ctx context.Context) (Metrics, error) {
	body, err := r.client.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	defer func() { _ = body.Close() }()
	return parse(body)
}

const (
	// dispatched is the API server's counter of requests that it began to serve.
	dispatched = "apiserver_flowcontrol_dispatched_requests_total"
	// served is its counter of requests that it has answered.
	served = "apiserver_request_total"
)

func countRequests(m Metrics) Count {
	c := Count{}
	m.each(dispatched, func(of labels, value int64) {
		if verb, ours := strings.CutPrefix(of["flow_schema"], flowSchema); ours {
			c[verb] += value
		}
	})
	return c
}

func countWrites(m Metrics, group string) (n int64) {
	m.each(served, func(of labels, value int64) {
		switch of["verb"] {
		case "PATCH", "APPLY", "PUT":
			if of["group"] == group && of["dry_run"] == "" && of["code"] == "200" {
				n += value
			}
		}
	})
	return n
}
