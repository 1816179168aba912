package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// column is a column of the table, made of tests of one package.
type column struct {
	title string
	// folder is the folder of the package, from the root of the repository.
	folder string
	// tests are the names of tests; TestScripts/name is a script of testdata/script.
	tests []string
	// attribute is the attribute that a test reports by testing.T.Attr. The cell shows its value instead of the number of tests.
	attribute string
}

const (
	crds     = "test/crdmigrator"
	revision = "test/revision"
	commands = "cmd/godwit"
)

// columns are all columns. Their tests take three to five minutes on two cores for each version.
var columns = []column{
	{title: "lifecycle", folder: crds, tests: []string{
		"TestLifecycleOfAVersion", "TestStorageVersionMovesMidRun", "TestSchemaChangeMidRunIsSurvived", "TestKilledRunsWriteNoObjectTwice",
		"TestChangedCRDIsNotTrimmed", "TestCRDDeletedMidRun", "TestRunReportsADeniedObject", "TestEveryWriteMigrates", "TestEtcdVerifyAgreesWithEtcd",
		"TestManagedFieldsOfARemovedVersion", "TestPlanNamesTheWebhookThatDeniesAndAWriteThatPasses", "TestWhatProvesAMigration",
	}},
	{title: "conversion webhook", folder: crds, tests: []string{
		"TestConversionWebhook", "TestConversionWebhookRestartsMidRun", "TestManagedFieldsOutliveTheConverter",
	}},
	{title: "settle", folder: crds, tests: []string{
		"TestSettleTimeDecidesWithoutLeases", "TestServerWithoutIdentityLeases", "TestStoppedServerCannotPutObjectsBack", "TestAcceptedStaleLeasePutsObjectsBack",
	}},
	{title: "revisions", folder: revision, tests: []string{
		"TestUpgradeRepointsEveryReference", "TestPhases", "TestRollback", "TestRollbackAfterTheRemoval", "TestRunningReferrerIsLeftAlone",
		"TestSharedRevisionIsLeftByBoth", "TestNameIsTaken", "TestReferrerAtAnUnknownVersion", "TestInventorySaysWhatCanBeDropped",
	}},
	{title: "commands", folder: commands, tests: []string{"TestScripts/plan", "TestScripts/run", "TestScripts/verify", "TestScripts/rescue"}},
	{title: "identity leases", folder: crds, tests: []string{"TestIdentityLeases"}, attribute: "identity-leases"},
	{title: "in-tree migrator, by default", folder: crds, tests: []string{"TestInTreeMigratorTrims"}, attribute: "in-tree-default"},
	{title: "with its feature gate", folder: crds, tests: []string{"TestInTreeMigratorTrims", "TestInTreeMigrationThatNoControllerBegins"}, attribute: "in-tree"},
	{title: "it trims", folder: crds, tests: []string{"TestInTreeMigratorTrims"}, attribute: "in-tree-trims"},
	{title: "unreadable objects, by default", folder: crds, tests: []string{"TestUnreadableObjects", "TestServerThatNamesNoUnreadableObject"}, attribute: "unreadable-objects"},
}

// notRun is the cell of a column of which no test ran.
const notRun = "not run"

// cell returns the text of the column for a run of its package.
func (c column) cell(r results) string {
	var failed []string
	for _, test := range c.tests {
		switch outcome := r.outcomes[test]; outcome {
		case "pass":
		case "fail":
			failed = append(failed, test)
		case "":
			failed = append(failed, test+" (did not run)")
		default:
			failed = append(failed, fmt.Sprintf("%s (%s)", test, outcome))
		}
	}
	switch value := r.attributes[c.attribute]; {
	case len(failed) > 0:
		return "**fails**: " + strings.Join(failed, ", ")
	case r.outcomes[""] != "pass" && !slices.Contains(slices.Collect(maps.Values(r.tests())), "fail"):
		return "**fails**: " + c.folder + ", outside of its tests"
	case c.attribute == "":
		return fmt.Sprintf("passes, %d of %d", len(c.tests), len(c.tests))
	case value == "":
		return "**fails**: " + c.tests[0] + " reports no " + c.attribute
	default:
		return value
	}
}

// folders returns the folders of all packages, in the order of the columns.
func folders() []string {
	var all []string
	for _, c := range columns {
		if !slices.Contains(all, c.folder) {
			all = append(all, c.folder)
		}
	}
	return all
}

// pattern returns the tests of a package as a pattern for go test -run.
func pattern(folder string) string {
	var tests, scripts []string
	for _, c := range columns {
		if c.folder != folder {
			continue
		}
		for _, test := range c.tests {
			name, script, isScript := strings.Cut(test, "/")
			if isScript {
				scripts = append(scripts, script)
			}
			if !slices.Contains(tests, name) {
				tests = append(tests, name)
			}
		}
	}
	p := "^(" + strings.Join(tests, "|") + ")$"
	if len(scripts) > 0 {
		p += "/^(" + strings.Join(scripts, "|") + ")$"
	}
	return p
}
