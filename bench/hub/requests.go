package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requests are those that processes have sent to API servers, by the name of the process.
type requests map[string]int64

// since is what came after an earlier count.
func (r requests) since(earlier requests) requests {
	later := requests{}
	for name, n := range r {
		later[name] = n - earlier[name]
	}
	return later
}

// countRequests reads what each process has counted.
func (in *installation) countRequests(ctx context.Context) (requests, error) {
	all := requests{}
	for name, address := range in.metrics {
		n, err := countAt(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", name, err)
		}
		all[name] = n
	}
	return all, nil
}

func countAt(ctx context.Context, address string) (total int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return 0, err
	}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		total += int64(m.GetCounter().GetValue())
	}
	return total, nil
}
