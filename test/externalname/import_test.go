package externalname_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
)

// countWrites has the provider reach the directory by a proxy that counts the requests which write.
func (w *directoryWorld) countWrites() *atomic.Int64 {
	w.t.Helper()
	var writes atomic.Int64
	w.through(newProxy(w.t, server.Address(), func(tag byte) bool {
		switch tag {
		case addRequest, modifyRequest, modifyDNRequest, deleteRequest:
			writes.Add(1)
		}
		return false
	}))
	return &writes
}

// startProvider starts the whole provider, as its command run does.
func (w *directoryWorld) startProvider() {
	w.t.Helper()
	w.start(options{}, func(m manager.Manager) error {
		return provider.Setup(m, xpcontroller.Options{PollInterval: time.Second, MaxConcurrentReconciles: 5})
	})
}

// The guide is a user's way from an external name to full management. Each of its commands runs, and nothing is written to
// the directory.
func TestGuideToImport(t *testing.T) {
	w := newDirectoryWorld(t)
	writes := w.countWrites()
	id := w.addPerson("jane", "")
	w.setTitle(id, "engineer")
	w.addPerson("john", "")
	w.startProvider()
	dir, env := reader(t)
	if commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join("..", "..", "docs", "guides", "import-external-resources.md"), Dir: dir, Env: env,
		Placeholders: map[string]string{"NAMESPACE": w.namespace, "ENTRY-UUID": id, "PARENT-DN": w.config.BaseDN},
	}); err != nil || commands < 5 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}

	jane, john := w.ldapPerson("jane"), w.ldapPerson("john")
	for _, p := range []*ldapv1.Person{jane, john} {
		awaitObject(w.world, p, "managed", func(p *ldapv1.Person) bool { return isBound(p) && ready(p) })
	}
	seen := jane.Generation
	awaitObject(w.world, jane, "observed", func(p *ldapv1.Person) bool { return p.GetCondition(xpv2.TypeSynced).ObservedGeneration >= seen })
	time.Sleep(2 * time.Second) // two observations under full management
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes to the directory", n)
	}
	if got := get(w.world, jane).Spec.ManagementPolicies; len(got) != 1 || got[0] != xpv2.ManagementActionAll {
		t.Errorf("policies are %v", got)
	}
}

// An import is checked like any other object, and its diff is in the debug log as well.
func TestImportIsChecked(t *testing.T) {
	w := newDirectoryWorld(t)
	incomplete := w.ldapPerson("jane")
	incomplete.Spec.ManagedResourceSpec, incomplete.Spec.ForProvider.Surname = spec("Observe"), ""
	meta.SetExternalName(incomplete, unknownID)
	if err := w.client.Create(t.Context(), incomplete); !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.forProvider.surname") {
		t.Errorf("an import without a required field: %v", err)
	}

	id := w.addPerson("jane", "")
	log := &debugLog{}
	run(w.world, provider.Persons(w.at), options{further: []managed.ReconcilerOption{managed.WithLogger(log)}})
	jane := w.ldapPerson("jane")
	jane.Spec.ManagedResourceSpec, jane.Spec.ForProvider.Title = spec("Observe"), "boss"
	meta.SetExternalName(jane, id)
	w.create(jane)
	awaitObject(w.world, jane, "compared", isBound[*ldapv1.Person])
	w.await("debug log", func() string {
		if log.contains(`title: observed "", desired "boss"`) {
			return ""
		}
		return "no diff"
	})
}

// debugLog keeps the values of debug messages.
type debugLog struct {
	mu     sync.Mutex
	values []any
}

func (l *debugLog) Info(string, ...any) {}

func (l *debugLog) Debug(_ string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, values...)
}

func (l *debugLog) WithValues(...any) logging.Logger { return l }

func (l *debugLog) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.values {
		if s, ok := v.(string); ok && strings.Contains(s, text) {
			return true
		}
	}
	return false
}

// reader is where a reader of a guide is, with kubectl and the provider's command.
func reader(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := controlplane.WriteKubeconfig(file, shared.Config()); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// This program is the provider's command as well: see TestMain.
	script := "#!/bin/sh\n" + commandVariable + "=1 exec '" + program + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "provider-ldap"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	kubectl, err := filepath.Abs(filepath.Join("..", "..", "bin", "controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		kubectl = assets
	}
	if _, err := os.Stat(filepath.Join(kubectl, "kubectl")); err != nil {
		t.Skip(err) // envtest's downloads have kubectl, other control planes may not.
	}
	return dir, append(os.Environ(), "KUBECONFIG="+file, "PATH="+dir+":"+kubectl+":"+os.Getenv("PATH"))
}

// commandVariable makes this program the provider's command.
const commandVariable = "GODWIT_PROVIDER_LDAP"

// cluster is the one of all tests, for commands in this process.
func cluster() (*rest.Config, error) { return shared.Config(), nil }
