package ocm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// hubNamespace has the hub's own ServiceAccount for bootstrap kubeconfigs.
	hubNamespace     = "open-cluster-management"
	bootstrapAccount = "agent-registration-bootstrap"
	// bootstrapRole is the ClusterRole that a token needs to register a cluster.
	bootstrapRole = "open-cluster-management:bootstrap"
	// controllerNamespace is where the registration controller would have its lease.
	controllerNamespace = "open-cluster-management-hub"
	// tokenLifetime is longer than any test.
	tokenLifetime = 24 * time.Hour
	// requestsPerSecond is the client-side limit of the registration controller and of agents. The default of 50 is too low for tests.
	requestsPerSecond = "1000"
)

// HubOptions are the options of a hub. The zero value works.
type HubOptions struct {
	// CRDs are installed beside those of Open Cluster Management.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// BootstrapNamespace has the bootstrap secrets that a KlusterletConfig names; multicluster-engine unless set.
	BootstrapNamespace string
	// Plain means that the hub has no import controller.
	Plain bool
	// Original is the import controller that runs instead of the simulated one, if it has a Source.
	Original Original
}

// Hub is a hub that runs.
type Hub struct {
	*controlplane.ControlPlane

	// Name is the name of the hub in logs.
	Name string
	// Client is the client of the administrator. It has no cache.
	Client client.Client

	bootstrapNamespace string
	program            string
	log                *logFile
	operator, importer *loop
	// freezes means that the import controller does not change klusterlets while automatic import is disabled.
	freezes atomic.Bool

	mu               sync.Mutex
	original         Original
	importController *process.Process
	controller       *process.Process
	approved         string
	kubeconfig       []byte
}

// BootstrapKubeconfig returns the kubeconfig with which imported clusters register at this hub.
func (h *Hub) BootstrapKubeconfig() []byte { return h.kubeconfig }

// IssueKubeconfig issues a bootstrap kubeconfig for a ServiceAccount, for a time.
func (h *Hub) IssueKubeconfig(ctx context.Context, namespace, account string, lifetime time.Duration) ([]byte, error) {
	seconds := int64(lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := h.Client.SubResource("token").Create(ctx, object, request); err != nil {
		return nil, fmt.Errorf("issue a token of %s/%s: %w", namespace, account, err)
	}
	return tokenKubeconfig(h.Config(), request.Status.Token)
}

// Scheme has the types of Kubernetes and of Open Cluster Management that hubs and clusters use.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, workv1.Install, operatorv1.Install, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name, which no input can cause
		}
	}
	return scheme
}

// restartController restarts the registration controller if its users have changed. The controller approves the certificate
// requests of these users and of the hub's own account.
func (h *Hub) restartController(users []string) error {
	approved := strings.Join(append([]string{serviceAccountUser(hubNamespace, bootstrapAccount)}, users...), ",")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.controller != nil {
		if approved == h.approved {
			return nil
		}
		if err := h.controller.Stop(); err != nil {
			return err
		}
	}
	kubeconfig := filepath.Join(h.Dir(), "registration.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, h.Config()); err != nil {
		return err
	}
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	controller, err := startRegistration(h.program, "registration controller of "+h.Name, filepath.Join(h.Dir(), "registration-controller.log"),
		"controller", "--kubeconfig="+kubeconfig, "--namespace="+controllerNamespace, "--listen="+address,
		"--feature-gates=ManagedClusterAutoApproval=true", "--auto-approved-csr-users="+approved)
	if err != nil {
		return err
	}
	h.controller, h.approved = controller, approved
	return nil
}

func serviceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// startRegistration starts the controller or an agent without leader election, because a killed process would keep its lease.
func startRegistration(program, name, log string, args ...string) (*process.Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	command := exec.Command(program, append(args, "--disable-leader-election", "--kube-api-qps="+requestsPerSecond, "--kube-api-burst="+requestsPerSecond)...)
	command.Stdout, command.Stderr = out, out
	return process.Start(name, command)
}
