package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/client-go/discovery"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
)

// readEnvironment reads the machine, the versions and the conditions. Each part adds its own date and load.
func readEnvironment(ctx context.Context, cluster *frame.Cluster) (result.Environment, error) {
	versions, err := readVersions(ctx, cluster)
	return result.Environment{
		CPU: readLine("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		Memory: readLine("/proc/meminfo", "MemTotal"), Go: runtime.Version(), Versions: versions,
	}, err
}

// readLine returns the value of a line of a file in /proc; empty if there is none.
func readLine(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readVersions reads the versions of the servers and of all contestants.
func readVersions(ctx context.Context, cluster *frame.Cluster) (map[string]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	server, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	status, err := cluster.Etcd().Status(ctx, cluster.EtcdEndpoint())
	if err != nil {
		return nil, err
	}
	v := map[string]string{"kubernetes": server.GitVersion, "etcd": status.Version}
	for module, path := range map[string]string{"clusterapi": "sigs.k8s.io/cluster-api", "ksvm": "sigs.k8s.io/kube-storage-version-migrator"} {
		if v[path], err = moduleVersion(ctx, module, path); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// moduleVersion returns the version of a module with which a program of tools/peers is built.
func moduleVersion(ctx context.Context, program, module string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	command.Dir = filepath.Join(peerModules, program)
	command.Env = append(os.Environ(), "GOWORK=off")
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("read %s/go.mod: %w", command.Dir, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return "", fmt.Errorf("read %s/go.mod: %w", command.Dir, err)
	}
	for _, r := range file.Require {
		if r.Path == module {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod does not require %s", command.Dir, module)
}
