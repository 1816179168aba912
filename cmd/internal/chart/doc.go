// Package chart tests the parts of an installation: the chart in charts/godwit and the image of the Dockerfile. It has
// tests only.
//
// Helm itself, compiled from its module, renders the chart, and a real API server gets the manifests. The binary is
// started as in the Deployment, with exactly the permissions of its ServiceAccount. The tests need no container engine:
// they start the binary that the Dockerfile compiles in an empty folder.
//
// Read chart_test.go for the manifests, install_test.go for their installation, run_test.go and agent_test.go for the
// running processes, and image_test.go. monitoring_test.go and certificate_test.go are about the metrics.
// promtool_test.go and prometheus_test.go, with monitored_test.go, run by make test-monitoring.
package chart

//go:generate env GOWORK=off go tool -modfile=../../../tools/helm-docs/go.mod helm-docs --chart-search-root=../../../charts --log-level=warning
