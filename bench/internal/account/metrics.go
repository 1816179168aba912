package account

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics has the metrics of a process, by their names.
type Metrics map[string]*dto.MetricFamily

// GetMetrics reads the metrics of a process that serves them without authentication.
func GetMetrics(ctx context.Context, address string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return parse(response.Body)
}

func parse(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return m, nil
}

// Sum adds the values of all counters of a name.
func (m Metrics) Sum(name string) (sum int64) {
	m.each(name, func(_ labels, value int64) { sum += value })
	return sum
}

// labels are the labels of one counter.
type labels map[string]string

func (m Metrics) each(name string, do func(of labels, value int64)) {
	for _, metric := range m[name].GetMetric() {
		of := labels{}
		for _, l := range metric.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		do(of, int64(metric.GetCounter().GetValue()))
	}
}
