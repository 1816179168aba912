package guide_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// performed is what documents show that a test runs.
type performed struct {
	commands []string            // on one line each
	printed  []string            // lines of output
	files    map[string][]string // lines of YAML, by file name
}

// placeholder is what the reader of a guide replaces: a word in capitals.
var placeholder = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(-[A-Z0-9]+)*\b`)

// testedElsewhere are guides that a test runs itself: of this package, one needs two clusters, one restarts API servers, and one has a CRD of its own; test/externalname
// needs a provider and a directory server, or copies a provider from a guide, test/hub/e2e two hubs and their clusters, test/crdmigrator unreadable objects and released CRDs, and cmd/internal/chart
// Prometheus and releases of the chart.
var testedElsewhere = []string{"fleet.md", "import-external-resources.md", "keep-values.md", "lost-hub.md", "lost-target-hub.md", "monitor.md", "move-clusters.md", "move-to-crossplane-v2.md", "replace-keys-of-hubs.md", "rescue-a-crd.md", "rotate-an-encryption-key.md", "secure-the-broker.md", "skip-releases.md", "uninstall.md", "upgrade-godwit.md", "write-a-provider.md"}

// published is the chart of a release. Tutorials install the same chart from its folder, since a test has no registry.
const published = "oci://ghcr.io/godwit-dev/charts/godwit"

// TestGuides compares the guides, and the README, with the tutorials. A guide is for the reader's own cluster, so a test cannot
// run it. Instead, each of its commands, lines of output and lines of YAML must be one that a tutorial shows.
func TestGuides(t *testing.T) {
	shown := performedBy(t, documents(t, "tutorials")...)
	shown.commands = append(shown.commands, installCommands(t)...)
	for _, file := range append(documents(t, "guides"), filepath.Join(root, "README.md")) {
		steps := stepsOf(t, file)
		checkSources(t, file, steps)
		if !slices.Contains(testedElsewhere, filepath.Base(file)) {
			shown.checkAll(t, file, steps)
		}
	}
}

// TestErrorPages compares the pages about error messages, and those for users of other tools, with the tutorials, and with the guides that tests run.
func TestErrorPages(t *testing.T) {
	run := documents(t, "tutorials")
	for _, guide := range testedElsewhere {
		run = append(run, filepath.Join(root, "docs", "guides", guide))
	}
	shown := performedBy(t, run...)
	for _, file := range slices.Concat(documents(t, "errors"), documents(t, "coming-from")) {
		shown.checkAll(t, file, stepsOf(t, file))
	}
}

// TestInstallCommands: README shows how to install the newest release, in lines that a reader can run as they are.
func TestInstallCommands(t *testing.T) {
	installs := installCommands(t)
	if len(installs) < 5 {
		t.Errorf("README has %d commands in its section about the installation, want at least 5", len(installs))
	}
	for _, command := range installs {
		if found := placeholder.FindString(command); found != "" {
			t.Errorf("README: a reader can't replace %s in `%s`", found, command)
		}
	}
}

var inCode = regexp.MustCompile("`([a-z]+ [^`]+)`")

// installCommands are those of README that no tutorial runs, since they load a release.
func installCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Install\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, found := range inCode.FindAllStringSubmatch(section, -1) {
		commands = append(commands, found[1])
	}
	return commands
}

func (p performed) checkAll(t *testing.T, file string, steps []step) {
	t.Helper()
	for _, s := range steps {
		if err := p.check(s); err != nil {
			t.Errorf("%s:%d: %v", file, s.line, err)
		}
	}
}

func stepsOf(t *testing.T, file string) []step {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return steps
}

func performedBy(t *testing.T, files ...string) performed {
	t.Helper()
	shown := performed{files: map[string][]string{}}
	for _, file := range files {
		for _, s := range stepsOf(t, file) {
			switch {
			case s.isCommand():
				shown.commands = append(shown.commands, oneLine(s.text))
				shown.printed = append(shown.printed, lines(s.want)...)
			case s.file != "":
				shown.files[s.file] = append(shown.files[s.file], lines(s.text)...)
			}
		}
	}
	return shown
}

// check tells whether a tutorial shows a step of a guide.
func (p performed) check(s step) error {
	switch {
	case s.source != "":
		return nil
	case s.file != "":
		for _, line := range lines(s.text) {
			if !slices.ContainsFunc(p.files[s.file], template(line).MatchString) {
				return fmt.Errorf("no tutorial has this line in %s: %s", s.file, line)
			}
		}
		return nil
	}
	if target, isMake := strings.CutPrefix(s.text, "make "); isMake {
		return checkTarget(target)
	}
	command := strings.ReplaceAll(oneLine(s.text), published, "charts/godwit")
	if !slices.Contains(p.commands, s.text) && !slices.ContainsFunc(p.commands, template(command).MatchString) {
		return fmt.Errorf("no tutorial runs `%s`", oneLine(s.text))
	}
	for _, line := range lines(s.want) {
		if line != "..." && !slices.ContainsFunc(p.printed, template(line).MatchString) {
			return fmt.Errorf("no command of a tutorial prints: %s", line)
		}
	}
	return nil
}

// template finds a line in which something stands for each placeholder and for each "...".
func template(line string) *regexp.Regexp {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`)
	return regexp.MustCompile(placeholder.ReplaceAllString(quoted, `\S+`))
}

func checkTarget(target string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(makefile), "\n"+target+":") {
		return fmt.Errorf("there is no target %s in the Makefile", target)
	}
	return nil
}

func oneLine(command string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(command, "\\\n", " ")), " ")
}

// lines are those that are not empty, with one space between words.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = oneLine(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func TestCheckFindsWhatNoTutorialShows(t *testing.T) {
	shown := performed{
		commands: []string{"godwit crd run backups.example.com --yes --timeout=80s", "helm install godwit charts/godwit"},
		printed:  []string{"backups.example.com ● Ready v2"},
		files:    map[string][]string{"manager.yaml": {"- group: example.com"}},
	}
	for reason, c := range map[string]struct {
		step  step
		shown bool
	}{
		"a command":            {step{text: "godwit crd run NAME --yes"}, true},
		"another command":      {step{text: "godwit crd run NAME --force"}, false},
		"output":               {step{text: "godwit crd run NAME", want: "NAME ● Ready ...\n"}, true},
		"other output":         {step{text: "godwit crd run NAME", want: "NAME ✗ Blocked\n"}, false},
		"YAML":                 {step{file: "manager.yaml", text: "- group: GROUP\n"}, true},
		"other YAML":           {step{file: "manager.yaml", text: "- label: GROUP\n"}, false},
		"YAML of another file": {step{file: "values.yaml", text: "- group: GROUP\n"}, false},
		"a target of make":     {step{text: "make test"}, true},
		"no target of make":    {step{text: "make tests"}, false},
		"a chart of a release": {step{text: "helm install godwit oci://ghcr.io/godwit-dev/charts/godwit"}, true},
		"a chart of others":    {step{text: "helm install godwit oci://ghcr.io/other/charts/godwit"}, false},
	} {
		if err := shown.check(c.step); (err == nil) != c.shown {
			t.Errorf("%s: error %v, want one: %v", reason, err, !c.shown)
		}
	}
}

// named are the paths that ARCHITECTURE.md names: those of the layout, and those in its tables.
var (
	inLayout = regexp.MustCompile(`(?m)^([a-z][\w./-]*) {2,}\S`)
	inTables = regexp.MustCompile("`((?:api|bench|charts|cmd|crdmigrator|internal|revision|test|walk)/[\\w./-]+)`")
)

// TestArchitectureNamesWhatExists finds a path that has moved since.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := append(inLayout.FindAllStringSubmatch(string(text), -1), inTables.FindAllStringSubmatch(string(text), -1)...)
	if len(named) < 60 {
		t.Errorf("found %d paths, want at least 60: is the layout still a tree with one path in each line?", len(named))
	}
	for _, found := range named {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(found[1]))); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", found[1], err)
		}
	}
}
