package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	lastLine          = "demo: 2000 objects, 0 at old versions, storedVersions trimmed on 3 CRDs"
	lastRevisionsLine = "demo: 26 references to 10 revisions, 0 at old versions, 0 lost"
	lastNamesLine     = "demo: 12 names renamed and 12 rolled back byte for byte, 12 identities unchanged, 0 external creations, 14 of 14 databases exist"
	lastClustersLine  = "demo: 9 clusters, 5 moved with 25 objects, 4 back with 20 objects, each accepted by one hub, 0 objects left behind"
)

// longest is the time that a demo may take on a busy machine.
const longest = 5 * time.Minute

// runAsDemo makes the program of the tests the demo.
const runAsDemo = "GODWIT_TEST_RUN_AS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(runAsDemo) != "" {
		main()
	}
	controlplane.Parallel(3) // stories wait more than they work, and each has a control plane of its own
	os.Exit(m.Run())
}

// command is the demo.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), runAsDemo+"=1")
	return c
}

// show is a running demo.
type show struct {
	t       *testing.T
	command *exec.Cmd
	tmp     string // its TMPDIR

	mu     sync.Mutex
	output bytes.Buffer
	wrote  chan struct{}
	ended  chan struct{} // closed when it has
}

// compile lets no two stories compile the program at the same time.
var compile = sync.OnceValue(func() error {
	folder, err := os.MkdirTemp("", "godwit-demo-test-")
	if err != nil {
		return err
	}
	_, err = program.Godwit(context.Background(), folder)
	return errors.Join(err, os.RemoveAll(folder))
})

func start(t *testing.T, args ...string) *show {
	t.Helper()
	if err := compile(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	s := &show{t: t, tmp: t.TempDir(), wrote: make(chan struct{}, 1), ended: make(chan struct{})}
	s.command = command(ctx, t, args...)
	s.command.Env = append(s.command.Env, "TMPDIR="+s.tmp, "KUBECONFIG=/nonexistent")
	s.command.Stdout, s.command.Stderr = s, s
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.command.Wait() // the exit code says it
		close(s.ended)
	}()
	return s
}

func (s *show) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return s.output.Write(p)
}

func (s *show) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

// awaitText returns when the story has got so far.
func (s *show) awaitText(part string) {
	s.t.Helper()
	for !strings.Contains(s.text(), part) {
		select {
		case <-s.wrote:
		case <-s.ended: // at the latest after longest
			s.t.Fatalf("the demo ends before %q:\n%s", part, s.text())
		}
	}
}

func (s *show) interrupt() {
	s.t.Helper()
	if err := s.command.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
}

// mustEnd checks the exit code, and that nothing is left running or lying
// about.
func (s *show) mustEnd(code int) {
	s.t.Helper()
	<-s.ended
	if got := s.command.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d:\n%s", got, code, s.text())
	}
	addresses := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(s.text(), -1)
	if len(addresses) < 2 {
		s.t.Errorf("the demo prints %v, want the addresses of etcd and kube-apiserver", addresses)
	}
	for _, address := range addresses {
		if connection, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = connection.Close()
			s.t.Errorf("a server still runs at %s", address)
		}
	}
	left, err := os.ReadDir(s.tmp)
	if err != nil || len(left) > 0 {
		s.t.Errorf("left in the folder of temporary files: %v, %v", left, err)
	}
}

// mustEndWith checks the last line of what was printed on stdout and stderr.
func (s *show) mustEndWith(line string) {
	s.t.Helper()
	lines := strings.Split(strings.TrimSuffix(s.text(), "\n"), "\n")
	if last := lines[len(lines)-1]; last != line {
		s.t.Errorf("last line is %q, want %q:\n%s", last, line, s.text())
	}
}

// TestStoryEndsWithoutKeep: the ends of the two stories differ by --keep alone, so only the shorter story runs without it;
// TestKeep runs each story to its end.
func TestStoryEndsWithoutKeep(t *testing.T) {
	t.Parallel()
	s := start(t, "revisions")
	s.mustEnd(0)
	s.mustEndWith(lastRevisionsLine)
}

// TestKeep uses the cluster that a story leaves, and ends it.
func TestKeep(t *testing.T) {
	t.Parallel()
	for story, c := range map[string]struct {
		args []string
		last string
		left schema.GroupVersionResource
	}{
		"stored objects":      {nil, lastLine, schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}},
		"ControllerRevisions": {[]string{"revisions"}, lastRevisionsLine, schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}},
		"external names":      {[]string{"names"}, lastNamesLine, schema.GroupVersionResource{Group: "jobs.example.org", Version: "v1", Resource: "databases"}},
		"managed clusters":    {[]string{"clusters"}, lastClustersLine, schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1", Resource: "managedclusters"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			file, began := filepath.Join(t.TempDir(), "kubeconfig"), time.Now()
			s := start(t, append(c.args, "--keep", "--write-kubeconfig="+file)...)
			s.awaitText(c.last)
			t.Logf("shown in %v:\n%s", time.Since(began).Round(time.Second), s.text())
			config, err := clientcmd.BuildConfigFromFlags("", file)
			if err != nil {
				t.Fatal(err)
			}
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			if list, err := client.Resource(c.left).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) == 0 {
				t.Errorf("list %s with the kubeconfig that was written: %v, want some", c.left.Resource, err)
			}
			s.interrupt()
			s.mustEnd(0)
			s.mustEndWith(c.last)
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the kubeconfig of a cluster that is gone: %v, want none", err)
			}
		})
	}
}

// TestInterrupt stops the story at moments at which something else runs.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for moment, c := range map[string]struct {
		args []string
		part string
	}{
		"objects are being created": {nil, "Gateway API v1.0.0 stores"},
		"godwit runs":               {nil, "gatewayclasses.gateway.networking.k8s.io: migrating"},
		"CRDs are being served":     {[]string{"revisions"}, "2. The revisions that KubeVirt left"},
		"revisions are upgraded":    {[]string{"revisions"}, "advancing 6 upgrades"},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.args...)
			s.awaitText(c.part)
			s.interrupt()
			s.mustEnd(130)
		})
	}
}

// TestMissing: what the machine lacks is said in one line.
func TestMissing(t *testing.T) {
	noServers := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GOMODCACHE=" + moduleCache(t)}
	for missing, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"go command":         {env: []string{"PATH=" + t.TempDir()}, want: "install Go"},
		"module":             {env: append(noServers, "GOMODCACHE="+filepath.Join(t.TempDir(), "none"), "GOPROXY=off"), want: "sigs.k8s.io/gateway-api@v1.0.0"},
		"servers":            {env: noServers, want: "make controlplane"},
		"understanding":      {args: []string{"--context=production"}, want: "the demo starts its own control plane"},
		"a cluster of yours": {args: []string{"revisions", "--context=production"}, want: "the demo starts its own control plane"},
		"names":              {args: []string{"names", "--context=production"}, want: "the demo starts its own control plane"},
		"compiler":           {env: []string{"PATH=" + t.TempDir()}, args: []string{"names"}, want: "compile the provider of the job service: the go command is not in PATH: install Go"},
		"use for arguments":  {args: []string{"production"}, want: `got "production"`},
	} {
		t.Run(missing, func(t *testing.T) {
			demo := command(t.Context(), t, c.args...)
			demo.Dir = t.TempDir() // no bin/controlplane above it
			demo.Env = slices.Concat(c.env, []string{runAsDemo + "=1", "TMPDIR=" + t.TempDir()})
			var stderr strings.Builder
			demo.Stderr = &stderr
			if err := demo.Run(); err == nil || demo.ProcessState.ExitCode() != 2 {
				t.Errorf("%v, want exit code 2", err)
			}
			if text := stderr.String(); !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("printed %q, want one line with %q", text, c.want)
			}
		})
	}
}

// TestHelp names every story, and flags may come before the story.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"revisions", "-h"}, {"--keep", "names", "--help"}} {
		out, err := command(t.Context(), t, args...).Output()
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		for _, want := range []string{"revisions ", "names ", "clusters ", "-keep", "-write-kubeconfig"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%v: the help has no %q:\n%s", args, want, out)
			}
		}
	}
}

func moduleCache(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}
