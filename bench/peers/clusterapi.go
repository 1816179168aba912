package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"

	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// clusterAPI is the CRD migrator of Cluster API.
type clusterAPI struct {
	env
	label, binary string
	qps           float64 // 0: its default
}

func (c clusterAPI) name() string { return c.label }

func (c clusterAPI) prepare(ctx context.Context, r *widget.Resource) (migration, error) {
	args := []string{"--kubeconfig=" + c.cluster.Kubeconfig, "--group=" + r.Group(), "--kind=" + widget.Kind}
	if c.qps != 0 {
		args = append(args, "--kube-api-qps="+strconv.FormatFloat(c.qps, 'f', -1, 64))
	}
	child, err := start(c.frame, c.label, exec.Command(c.binary, args...))
	if err != nil {
		return nil, err
	}
	m := &clusterAPIRun{clusterAPI: c, resource: r, child: child}
	if err := child.awaitLine(ctx); err != nil {
		_ = m.close(ctx)
		return nil, err
	}
	return m, nil
}

type clusterAPIRun struct {
	clusterAPI
	resource *widget.Resource
	child    *child
}

func (m *clusterAPIRun) begin(context.Context) error {
	_, err := io.WriteString(m.child.stdin, "start\n")
	return err
}

func (m *clusterAPIRun) wait(ctx context.Context) (string, error) {
	err := m.child.During(ctx, func(ctx context.Context) error { return awaitTrim(ctx, m.clients, m.resource) })
	if err != nil {
		return "retries", err
	}
	return fmt.Sprintf("storedVersions trimmed to %s", m.resource.Storage()), nil
}

func (m *clusterAPIRun) kill() error { return m.child.Crash() }

func (m *clusterAPIRun) close(context.Context) error { return m.child.end() }
