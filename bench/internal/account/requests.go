package account

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// flowSchema is the prefix of the schemas that count.
const flowSchema = "bench-godwit-"

// Requests counts what the ServiceAccount [Godwit] asks of the API server, by verb, in the
// server itself: a flow schema for each verb of that one user changes nothing of how a
// request is served, where a proxy would take its share of each.
type Requests struct{ client rest.Interface }

// verbs of the API; "other" is discovery.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// CountRequests begins to count.
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
			// Where service accounts are by default, and before the schema that puts them there, which has 9000.
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-low"},
			MatchingPrecedence:         500,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rule},
		},
	}
}

// Count is a number of requests by verb.
type Count map[string]int64

// Total of all verbs.
func (c Count) Total() int64 {
	var n int64
	for _, of := range c {
		n += of
	}
	return n
}

// Since is what came after an earlier count.
func (c Count) Since(earlier Count) Count {
	later := maps.Clone(c)
	for verb, n := range earlier {
		later[verb] -= n
	}
	maps.DeleteFunc(later, func(_ string, n int64) bool { return n == 0 })
	return later
}

// Read returns what was counted so far.
func (r *Requests) Read(ctx context.Context) (Count, error) {
	families, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	return countRequests(families), nil
}

// Writes returns how many writes of objects of an API group were served so far, of any user. One that failed or was a dry
// run does not count, but one that changed nothing does.
func (r *Requests) Writes(ctx context.Context, group string) (int64, error) {
	families, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	return countWrites(families, group), nil
}

func (r *Requests) read(ctx context.Context) (families, error) {
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

type families map[string]*dto.MetricFamily

func parse(metrics io.Reader) (families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	f, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's metrics: %w", err)
	}
	return f, nil
}

func countRequests(f families) Count {
	c := Count{}
	for _, m := range f[dispatched].GetMetric() {
		if verb, ours := strings.CutPrefix(label(m, "flow_schema"), flowSchema); ours {
			c[verb] += int64(m.GetCounter().GetValue())
		}
	}
	return c
}

func countWrites(f families, group string) (n int64) {
	for _, m := range f[served].GetMetric() {
		switch label(m, "verb") {
		case "PATCH", "APPLY", "PUT":
			if label(m, "group") == group && label(m, "dry_run") == "" && label(m, "code") == "200" {
				n += int64(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
