package main

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/managed"
)

// membersOf returns the managed resources of a script.
func membersOf(ts *testscript.TestScript) (managed.Kind, error) {
	return managed.New(clusterOf(ts).Config(), ts.Getenv("GROUP"))
}

// members: creates the CRD of managed resources, members.$GROUP.
func installMembers(ts *testscript.TestScript, _ []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(context.Background(), clusterOf(ts).Config(), members.CRD())
}

// member NAME EXTERNAL-NAME [MANAGER]: creates a managed resource.
func createMember(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	return members.Create(context.Background(), args[0], args[1], append(args, "")[2])
}

// provider NAME...: a provider of members, in whose external system these names exist, runs until the end of the script. It
// returns when all members are observed.
func runProvider(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	ts.Defer(members.Start(args...))
	return eventually(func() error { return members.Observed(context.Background()) })
}

// annotated NAME KEY [VALUE]: an annotation of a member has a value, or does not exist.
func checkAnnotation(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	annotations, err := members.Annotations(context.Background(), args[0])
	if err != nil {
		return err
	}
	if value, exists := annotations[args[1]]; len(args) > 2 && value != args[2] || exists != (len(args) > 2) {
		return fmt.Errorf("annotation %s of %s is %q", args[1], args[0], value)
	}
	return nil
}

// annotate NAME KEY VALUE: as kubectl annotate.
func annotateMember(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	return members.Annotate(context.Background(), args[0], args[1], args[2])
}
