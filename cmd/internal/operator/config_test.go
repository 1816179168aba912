package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

func TestReadConfiguration(t *testing.T) {
	const head = "apiVersion: config.godwit.dev/v1alpha1\nkind: ManagerConfiguration\n"
	for reason, test := range map[string]struct {
		text string
		says string // empty: it is fine
	}{
		"all defaults":                             {text: head},
		"everything":                               {text: head + "storageVersionMigrator:\n  scopes: [{group: a.example.com, labelSelector: {matchLabels: {a: b}}}]\n  defaults: {phases: [StorageVersionMigration], write: Update, settle: 10s, trim: false, maxInFlight: 4, maxWritesPerSecond: 50}\nlimits: {maxInFlight: 8, maxWritesPerSecond: 20.5, maxBytesPerFiveMinutes: 128Mi}\n"},
		"a typo in a key":                          {text: head + "storageVersionMigrator: {scope: []}\n", says: `unknown field "scope"`},
		"a key twice":                              {text: head + "limits: {}\nlimits: {}\n", says: "limits"},
		"another version":                          {text: "apiVersion: config.godwit.dev/v1\nkind: ManagerConfiguration\n", says: "config.godwit.dev/v1alpha1"},
		"a file of another kind":                   {text: "apiVersion: v1\nkind: ConfigMap\n", says: "ManagerConfiguration"},
		"no write of that name":                    {text: head + "storageVersionMigrator: {defaults: {write: put}}\n", says: "no such write"},
		"two documents":                            {text: head + "---\n" + head, says: "more than one document"},
		"no phase of that name":                    {text: head + "storageVersionMigrator: {defaults: {phases: [Migrate]}}\n", says: "no such phase"},
		"suspended for all":                        {text: head + "storageVersionMigrator: {defaults: {suspend: true}}\n", says: "--controllers"},
		"below no time":                            {text: head + "storageVersionMigrator: {defaults: {settle: -1s}}\n", says: "settle"},
		"no phase to trim after":                   {text: head + "storageVersionMigrator: {defaults: {phases: [CleanupManagedFields], trim: true}}\n", says: "defaults.trim: true needs the phase"},
		"longer than a day":                        {text: head + "storageVersionMigrator: {defaults: {settle: 25h}}\n", says: "defaults.settle"},
		"no request at once":                       {text: head + "storageVersionMigrator: {defaults: {maxInFlight: 0}}\n", says: "defaults.maxInFlight"},
		"fewer than no writes":                     {text: head + "storageVersionMigrator: {defaults: {maxWritesPerSecond: -4}}\n", says: "defaults.maxWritesPerSecond"},
		"requests below zero":                      {text: head + "limits: {maxInFlight: -1}\n", says: "limits.maxInFlight"},
		"writes below zero":                        {text: head + "limits: {maxWritesPerSecond: -1}\n", says: "limits.maxWritesPerSecond"},
		"bytes below zero":                         {text: head + "limits: {maxBytesPerFiveMinutes: -1}\n", says: "maxBytesPerFiveMinutes"},
		"a bad selector":                           {text: head + "storageVersionMigrator: {scopes: [{labelSelector: {matchExpressions: [{key: a, operator: Is}]}}]}\n", says: "scopes[0].labelSelector"},
		"every CRD there is, by an empty selector": {text: head + "storageVersionMigrator: {scopes: [{labelSelector: {}}]}\n", says: "name a group or a label"},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfiguration(path)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", reason, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: %v, want an error that names the file and says %q", reason, err, test.says)
		}
	}
}

func TestLimitsOfConfiguration(t *testing.T) {
	for reason, test := range map[string]struct {
		text string
		want walk.Limits
	}{
		"gentle by default":         {"{}", walk.Limits{MaxWritesPerSecond: DefaultMaxWritesPerSecond}},
		"a rate alone":              {"{maxWritesPerSecond: 7.5}", walk.Limits{MaxWritesPerSecond: 7.5}},
		"requests at once alone":    {"{maxInFlight: 8}", walk.Limits{MaxInFlight: 8, MaxWritesPerSecond: DefaultMaxWritesPerSecond}},
		"as fast as the command is": {"{maxWritesPerSecond: 0}", walk.Limits{}},
		"without a byte budget":     {"{maxInFlight: 1, maxWritesPerSecond: 1, maxBytesPerFiveMinutes: 0}", walk.Limits{MaxInFlight: 1, MaxWritesPerSecond: 1, MaxBytesPerFiveMinutes: -1}},
	} {
		var l Limits
		if err := yaml.UnmarshalStrict([]byte(test.text), &l); err != nil {
			t.Fatal(err)
		}
		if got := l.walk(); got != test.want {
			t.Errorf("%s: %+v, want %+v", reason, got, test.want)
		}
	}
}

func TestEnabled(t *testing.T) {
	for reason, test := range map[string]struct {
		flag  []string
		env   string // "-": not set
		want  []string
		fails bool
	}{
		"nothing is said":                   {env: "-", want: []string{StorageVersionMigrator}},
		"the environment says yes":          {env: "true", want: Controllers},
		"the environment says 1":            {env: "1", want: Controllers},
		"the environment says no":           {env: "false"},
		"the environment is unclear":        {env: "nope", fails: true},
		"an empty variable is unclear, too": {env: "", fails: true},
		"a flag beats the environment":      {flag: Controllers, env: "false", want: Controllers},
		"a flag beats what is unclear":      {flag: Controllers, env: "nope", want: Controllers},
		"no controller of that name":        {flag: []string{"migrator"}, env: "-", fails: true},
	} {
		got, err := enabled(test.flag, func(string) (string, bool) { return test.env, test.env != "-" })
		if (err != nil) != test.fails || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v, want %v", reason, got, err, test.want)
		}
	}
}

func TestScopeOfConfiguration(t *testing.T) {
	crd := func(name, key, value string) metav1.Object {
		return &metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value}}
	}
	theirs := ScopeConfiguration{Group: "toolhive.stacklok.dev", LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"toolhive.stacklok.dev/auto-migrate-storage-version": "true"}}}
	for reason, test := range map[string]struct {
		scopes []ScopeConfiguration
		crd    metav1.Object
		want   bool
	}{
		"by default the default label, in every group": {crd: crd("a.example.com", crdmigrator.AutoMigrateLabel, "true"), want: true},
		"and nothing else":                     {crd: crd("a.example.com", "a", "b")},
		"a group with the default label":       {[]ScopeConfiguration{{Group: "example.com"}}, crd("a.example.com", crdmigrator.AutoMigrateLabel, "true"), true},
		"another group with it":                {[]ScopeConfiguration{{Group: "example.com"}}, crd("a.example.org", crdmigrator.AutoMigrateLabel, "true"), false},
		"ToolHive's group and label":           {[]ScopeConfiguration{theirs}, crd("mcpservers.toolhive.stacklok.dev", "toolhive.stacklok.dev/auto-migrate-storage-version", "true"), true},
		"our label in ToolHive's group":        {[]ScopeConfiguration{theirs}, crd("mcpservers.toolhive.stacklok.dev", crdmigrator.AutoMigrateLabel, "true"), false},
		"ToolHive's label in another group":    {[]ScopeConfiguration{theirs}, crd("a.example.com", "toolhive.stacklok.dev/auto-migrate-storage-version", "true"), false},
		"our own kinds, in any scope":          {[]ScopeConfiguration{theirs}, crd("crdmigrations.godwit.dev", crdmigrator.AutoMigrateLabel, "true"), true},
		"but not without the label":            {[]ScopeConfiguration{theirs}, crd("crdmigrations.godwit.dev", "a", "b"), false},
		"every CRD of a group, when asked for": {[]ScopeConfiguration{{Group: "example.com", LabelSelector: &metav1.LabelSelector{}}}, crd("a.example.com", "a", "b"), true},
	} {
		scope, err := MigratorConfiguration{Scopes: test.scopes}.scope()
		if err != nil {
			t.Fatal(err)
		}
		if got := scope.Holds(test.crd); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

// TestBookkeepingKeepsUp: where more writes are allowed, the upgrades that a trigger makes
// are not what takes the time.
func TestBookkeepingKeepsUp(t *testing.T) {
	for name, test := range map[string]struct {
		writes *float64
		want   float32
	}{
		"by default": {nil, 20}, "slower": {new(5.0), 20}, "faster": {new(200.0), 200}, "no limit": {new(0.0), -1},
	} {
		if got := (Limits{MaxWritesPerSecond: test.writes}).bookkeeping(); got != test.want {
			t.Errorf("%s: %g requests per second, want %g", name, got, test.want)
		}
	}
}
