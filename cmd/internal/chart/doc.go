// Package chart tests what an installation is made of: the chart in charts/godwit
// and the image of the Dockerfile. It has no code of its own.
//
// The chart is rendered by Helm itself, which is compiled from its module, and
// what it renders is given to a real API server. The binary is started as the
// Deployment says, with the rights of its ServiceAccount and no others. There is
// no container engine in it: the image is what its Dockerfile compiles, started
// in a folder where nothing else is.
//
// Read chart_test.go for what is rendered, install_test.go for what an API server
// makes of it, run_test.go and agent_test.go for how it works, and image_test.go.
// monitoring_test.go and certificate_test.go are about the metrics. promtool_test.go
// and prometheus_test.go, with monitored_test.go, run by make test-monitoring.
package chart

//go:generate env GOWORK=off go tool -modfile=../../../tools/helm-docs/go.mod helm-docs --chart-search-root=../../../charts --log-level=warning
