package operator

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/broker"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdscope"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// ConfigurationVersion and ConfigurationKind head every configuration file.
	ConfigurationVersion = "config.godwit.dev/v1alpha1"
	// ConfigurationKind is the kind of the file.
	ConfigurationKind = "ManagerConfiguration"

	// StorageVersionMigrator is the controller of CRDMigrations, by the name that
	// flags, environment and chart use.
	StorageVersionMigrator = "storageVersionMigrator"
	// EnableVariable is the environment variable that disables StorageVersionMigrator, unless a flag overrides it.
	EnableVariable = "ENABLE_STORAGE_VERSION_MIGRATOR"

	// RevisionUpgrader are the controllers of ControllerRevisionUpgrades and of their
	// triggers.
	RevisionUpgrader = "revisionUpgrader"
	// EnableRevisionUpgrader is the environment variable that enables RevisionUpgrader, unless a flag overrides it.
	EnableRevisionUpgrader = "ENABLE_REVISION_UPGRADER"

	// ClusterMigration is the controller of ManagedClusterMigrations.
	ClusterMigration = "clusterMigration"
	// EnableClusterMigration is the environment variable that enables ClusterMigration, unless a flag overrides it.
	EnableClusterMigration = "ENABLE_CLUSTER_MIGRATION"
	// clusterMigrationKafka is the section of the file with the brokers, and kafkaClient the client name that brokers
	// log.
	clusterMigrationKafka = ClusterMigration + ".kafka"
	kafkaClient           = "godwit-manager"
)

// DefaultMaxWritesPerSecond keeps the manager's effect on other clients of a two-core API server small; docs/adr/0014
// has the measurements. It allows 72,000 objects in an hour.
const DefaultMaxWritesPerSecond = 20

// feature is a part of the manager that can run alone or beside others.
type feature struct {
	name, component string
	variable        string // that switches it
	byDefault       bool   // without flag and variable
}

// features are all features. A feature that only some clusters need, and that needs further permissions, is off by
// default.
var features = []feature{
	{name: StorageVersionMigrator, component: "storage-version-migrator", variable: EnableVariable, byDefault: true},
	{name: RevisionUpgrader, component: "revision-upgrader", variable: EnableRevisionUpgrader},
	{name: ClusterMigration, component: "cluster-migration", variable: EnableClusterMigration},
}

// Controllers are the names of all features.
var Controllers = names(features)

func names(features []feature) []string {
	var all []string
	for _, f := range features {
		all = append(all, f.name)
	}
	return all
}

// component returns the name of a feature in its roles and leases.
func component(name string) string {
	return features[slices.IndexFunc(features, func(f feature) bool { return f.name == name })].component
}

// Configuration is what a file says. Its zero value is the default.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	// StorageVersionMigrator says which CRDs are migrated, and how.
	StorageVersionMigrator MigratorConfiguration `json:"storageVersionMigrator"`
	// RevisionUpgrader says how triggers scan for revisions.
	RevisionUpgrader UpgraderConfiguration `json:"revisionUpgrader"`
	// ClusterMigration says how the manager reaches the agents of hubs.
	ClusterMigration ClusterMigrationConfiguration `json:"clusterMigration"`
	// Limits hold for all migrations together.
	Limits Limits `json:"limits"`
}

// MigratorConfiguration says which CRDs the manager migrates without a user's
// CRDMigration, and has the defaults of every CRDMigration.
type MigratorConfiguration struct {
	// Scopes are sets of CRDs; empty means those of every group that have the default
	// label. The manager always migrates its own kinds.
	Scopes []ScopeConfiguration `json:"scopes,omitempty"`
	// Defaults of a CRDMigration's spec.
	Defaults v1alpha1.CRDMigrationSpec `json:"defaults"`
}

// UpgraderConfiguration says how triggers scan for revisions.
type UpgraderConfiguration struct {
	// ScanEvery is how often a continuous trigger reads every revision of its scope
	// and all referrers; 10m unless set, and at least 1m.
	ScanEvery *metav1.Duration `json:"scanEvery,omitempty"`
}

// ClusterMigrationConfiguration says how the manager reaches the agents of hubs, and which migrations it begins.
type ClusterMigrationConfiguration struct {
	// Kafka says how to reach the brokers. The flags --kafka-* replace all of it.
	Kafka broker.Settings `json:"kafka"`
	// Namespaces are those whose ManagedClusterMigrations begin; empty means all. The flag --migration-namespaces replaces it.
	Namespaces []string `json:"namespaces,omitempty"`
}

// ScopeConfiguration is one set of CRDs.
type ScopeConfiguration struct {
	// Group is an API group; empty means every one.
	Group string `json:"group,omitempty"`
	// LabelSelector chooses CRDs by their labels; unset means
	// godwit.dev/auto-migrate-storage-version=true.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Limits bound the requests of all migrations together. The defaults leave the API
// server to other clients: no user waits for a manager, as for a command.
type Limits struct {
	// MaxInFlight requests at once; 0 means 16.
	MaxInFlight int `json:"maxInFlight,omitempty"`
	// MaxWritesPerSecond that start; unset means 20, and 0 no limit.
	MaxWritesPerSecond *float64 `json:"maxWritesPerSecond,omitempty"`
	// MaxBytesPerFiveMinutes that etcd has to take; unset means 512Mi, and 0 no
	// limit.
	MaxBytesPerFiveMinutes *resource.Quantity `json:"maxBytesPerFiveMinutes,omitempty"`
}

// walk returns the limits for a walk.Limiter.
func (l Limits) walk() walk.Limits {
	w := walk.Limits{MaxInFlight: l.MaxInFlight, MaxWritesPerSecond: DefaultMaxWritesPerSecond}
	if l.MaxWritesPerSecond != nil {
		w.MaxWritesPerSecond = *l.MaxWritesPerSecond
	}
	if q := l.MaxBytesPerFiveMinutes; q != nil {
		if w.MaxBytesPerFiveMinutes = q.Value(); w.MaxBytesPerFiveMinutes == 0 {
			w.MaxBytesPerFiveMinutes = -1
		}
	}
	return w
}

// ReadConfiguration reads a file strictly: an unknown key is an error, because it is probably a typo.
func ReadConfiguration(path string) (Configuration, error) {
	var c Configuration
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	if first, _, more := bytes.Cut(text, []byte("\n---")); more && len(bytes.TrimSpace(first)) > 0 {
		return c, fmt.Errorf("read the configuration %s: it has more than one document, of which one would be read", path)
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	if c.APIVersion != ConfigurationVersion || c.Kind != ConfigurationKind {
		return c, fmt.Errorf("read the configuration %s: apiVersion is %q and kind %q; this godwit understands %q and %q",
			path, c.APIVersion, c.Kind, ConfigurationVersion, ConfigurationKind)
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	return c, nil
}

func (c Configuration) validate() error {
	switch {
	case c.RevisionUpgrader.ScanEvery != nil && c.RevisionUpgrader.ScanEvery.Duration < time.Minute:
		return fmt.Errorf("revisionUpgrader.scanEvery: %s is below 1m", c.RevisionUpgrader.ScanEvery.Duration)
	case c.Limits.MaxInFlight < 0:
		return errors.New("limits.maxInFlight: it is below zero")
	case c.Limits.MaxWritesPerSecond != nil && *c.Limits.MaxWritesPerSecond < 0:
		return errors.New("limits.maxWritesPerSecond: it is below zero")
	case c.Limits.MaxBytesPerFiveMinutes != nil && c.Limits.MaxBytesPerFiveMinutes.Sign() < 0:
		return errors.New("limits.maxBytesPerFiveMinutes: it is below zero")
	}
	if err := validateDefaults(c.StorageVersionMigrator.Defaults); err != nil {
		return fmt.Errorf("storageVersionMigrator.defaults.%w", err)
	}
	_, err := c.StorageVersionMigrator.scope()
	return err
}

// maxSettle is the limit in the schema of the kind.
const maxSettle = 24 * time.Hour

// validateDefaults refuses values that the API server would refuse in the spec of a CRDMigration.
func validateDefaults(spec v1alpha1.CRDMigrationSpec) error {
	for _, phase := range spec.Phases {
		if !slices.Contains(decision.Phases, decision.Phase(phase)) {
			return fmt.Errorf("phases: no such phase: %q", phase)
		}
	}
	switch {
	case spec.Suspend:
		return errors.New("suspend: no CRD would ever be migrated; leave storageVersionMigrator out of --controllers instead")
	case spec.Write != "" && !slices.Contains(decision.Writes, decision.Write(spec.Write)):
		return fmt.Errorf("write: no such write: %q; there are %v", spec.Write, decision.Writes)
	case spec.Settle != nil && (spec.Settle.Duration < 0 || spec.Settle.Duration > maxSettle):
		return fmt.Errorf("settle: %s is not from 0s to %s", spec.Settle.Duration, maxSettle)
	case spec.Trim != nil && *spec.Trim && len(spec.Phases) > 0 && !slices.Contains(spec.Phases, v1alpha1.Phase(decision.StorageVersionMigrationPhase)):
		return errors.New("trim: true needs the phase StorageVersionMigration: without it, the version that objects are stored at is unknown")
	case spec.MaxInFlight != nil && *spec.MaxInFlight < 1:
		return fmt.Errorf("maxInFlight: %d is below 1; leave it out for no bound but that of limits", *spec.MaxInFlight)
	case spec.MaxWritesPerSecond != nil && *spec.MaxWritesPerSecond < 1:
		return fmt.Errorf("maxWritesPerSecond: %d is below 1; leave it out for no bound but that of limits", *spec.MaxWritesPerSecond)
	}
	return nil
}

// scope returns the set of CRDs for which the manager creates CRDMigrations. It always includes the manager's own
// kinds: users would forget them.
func (c MigratorConfiguration) scope() (crdscope.Scope, error) {
	byLabel := labels.SelectorFromSet(labels.Set{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue})
	if len(c.Scopes) == 0 {
		return crdscope.Scope{{LabelSelector: byLabel}}, nil
	}
	scope := crdscope.Scope{{Group: v1alpha1.GroupVersion.Group, LabelSelector: byLabel}}
	for i, s := range c.Scopes {
		one := crdmigrator.Selector{Group: s.Group, LabelSelector: byLabel}
		if s.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
			if err != nil {
				return nil, fmt.Errorf("storageVersionMigrator.scopes[%d].labelSelector: %w", i, err)
			}
			if selector.Empty() && s.Group == "" {
				return nil, fmt.Errorf("storageVersionMigrator.scopes[%d]: an empty labelSelector without a group means every CRD of the cluster; name a group or a label", i)
			}
			one.LabelSelector = selector
		}
		scope = append(scope, one)
	}
	return scope, nil
}

// enabled returns the controllers to run: those of the flag, or else those that are on by default, changed by the
// environment.
func enabled(flag []string, lookup func(string) (string, bool)) ([]string, error) {
	var all []string
	for _, name := range flag {
		i := slices.IndexFunc(Controllers, func(known string) bool { return strings.EqualFold(known, name) })
		if i < 0 {
			return nil, fmt.Errorf("no such controller: %q; there are: %s", name, strings.Join(Controllers, ", "))
		}
		all = append(all, Controllers[i])
	}
	if len(flag) > 0 {
		return all, nil
	}
	for _, f := range features {
		on := f.byDefault
		if value, ok := lookup(f.variable); ok {
			var err error
			if on, err = strconv.ParseBool(value); err != nil {
				return nil, fmt.Errorf("environment variable %s is %q: set it to true or false, or leave it out", f.variable, value)
			}
		}
		if on {
			all = append(all, f.name)
		}
	}
	return all, nil
}
