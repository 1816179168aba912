package frame

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// Cluster is a control plane with a user for godwit. As in production, the user is a ServiceAccount, which has the priority of other
// controllers at the API server.
type Cluster struct {
	*controlplane.ControlPlane
	// User is the ServiceAccount.
	User *rest.Config
	// Kubeconfig is the path of the user's kubeconfig.
	Kubeconfig string
	// Requests counts the requests of the user.
	Requests *account.Requests

	bench *Bench
}

// StartCluster starts a control plane. Main stops it at the end.
func (b *Bench) StartCluster(ctx context.Context, o controlplane.Options) (*Cluster, error) {
	plane, err := controlplane.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	b.Cleanup(plane.Stop)
	c := &Cluster{ControlPlane: plane, bench: b}
	if c.Requests, err = account.CountRequests(ctx, plane.Config()); err != nil {
		return nil, err
	}
	c.User, c.Kubeconfig, err = c.AddUser(ctx, account.Godwit)
	return c, err
}

// AddUser creates a ServiceAccount that may do everything, and writes its kubeconfig.
func (c *Cluster) AddUser(ctx context.Context, name string) (user *rest.Config, kubeconfig string, err error) {
	if user, err = account.AddUser(ctx, c.ControlPlane, name); err != nil {
		return nil, "", err
	}
	kubeconfig = filepath.Join(c.bench.Dir, name+".kubeconfig")
	return user, kubeconfig, controlplane.WriteKubeconfig(kubeconfig, user)
}

// CreateNamespace creates a namespace.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	clients, err := kubernetes.NewForConfig(c.User)
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// Command returns a command that runs godwit as the user of the cluster.
func (c *Cluster) Command(args ...string) *exec.Cmd {
	command := exec.Command(c.bench.Binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	return command
}

// Exit codes of godwit.
const (
	ExitDone    = 0
	ExitPending = 1
)

// Cost is the cost of a run of godwit, or of other work.
type Cost struct {
	Took time.Duration
	// CPU is the seconds of CPU time of the process that has done the work.
	CPU float64
	// ServersCPU is the seconds of CPU time of etcd and the API server, and of other processes that this one has started.
	ServersCPU float64
	// PeakRSS is in bytes: see [proc.Ended]. Requests are the requests of a cluster's user. Work of this process has neither.
	PeakRSS  int64
	Requests account.Count
}

// Run runs godwit, reads the report that it prints as JSON, and measures the whole process: with its start, its plan and its
// report. An unexpected exit code is an error.
func (c *Cluster) Run(ctx context.Context, code int, report any, args ...string) (Cost, error) {
	before, err := c.Requests.Read(ctx)
	if err != nil {
		return Cost{}, err
	}
	command := c.Command(append(args, "--output=json")...)
	var ended proc.Ended
	cost, err := measureServers(func() (err error) {
		ended, err = proc.Run(ctx, command)
		return err
	})
	if err != nil {
		return cost, err
	}
	if ended.Code != code {
		return cost, fmt.Errorf("%s ended with exit code %d, want %d:\n%s%.2000s", command, ended.Code, code, ended.Stderr, ended.Stdout)
	}
	if err := json.Unmarshal(ended.Stdout, report); err != nil {
		return cost, fmt.Errorf("read the report of %s: %w\n%.2000s", command, err, ended.Stdout)
	}
	after, err := c.Requests.Read(ctx)
	if err != nil {
		return cost, err
	}
	cost.Took, cost.CPU, cost.PeakRSS, cost.Requests = ended.Took, ended.CPU, ended.PeakRSS, after.Since(before)
	return cost, nil
}

// MeasureWork measures work that this process does itself.
func MeasureWork(work func() error) (Cost, error) {
	before, err := proc.UsageOf(os.Getpid())
	if err != nil {
		return Cost{}, err
	}
	cost, err := measureServers(work)
	if err != nil {
		return cost, err
	}
	after, err := proc.UsageOf(os.Getpid())
	cost.CPU = after.CPU - before.CPU
	return cost, err
}

func measureServers(work func() error) (Cost, error) {
	before, err := proc.ChildrenCPU()
	if err != nil {
		return Cost{}, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return Cost{}, err
	}
	took := time.Since(began)
	after, err := proc.ChildrenCPU()
	return Cost{Took: took, ServersCPU: after - before}, err
}
