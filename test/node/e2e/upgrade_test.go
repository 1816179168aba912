package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestUpgrade: an older release is upgraded, and rolled back, while a migration is under way. Each migration ends, and no object is written
// twice. The older release has the image, the chart and the CRDs of an older commit.
func TestUpgrade(t *testing.T) {
	s := newStage(t, olderThanIt, version)
	up, back := s.define("upgrade.example.com", 600), s.define("rollback.example.com", 600)
	values := merged(quick(up, back), map[string]any{"operator": map[string]any{"replicas": 2}})
	s.install(olderThanIt, values)
	before, oldKind := s.images(), s.generationOfKind()

	watched := s.watchMigration(up.crd())
	up.flip()
	up.awaitUnderWay()
	s.install(version, values)
	up.expectUnderWay()
	after := s.images()
	if contentOf(after) == contentOf(before) {
		t.Errorf("the pods run %s after the upgrade, and %s before: they are the same image", after, before)
	}
	if s.generationOfKind() == oldKind {
		t.Error("the upgrade has not changed the CRD of CRDMigrations: the releases have the same one")
	}
	up.awaitMigrated()
	expectGrowing(t, watched()) // the total of the older release leaves out what is under way

	back.flip()
	back.awaitUnderWay()
	s.helm("rollback", manager, "1", "--wait", "--timeout=3m")
	back.expectUnderWay()
	if after := s.images(); after != before {
		t.Errorf("the pods run %s after the rollback, want %s", after, before)
	}
	back.awaitMigrated() // what a watcher sees is that of the older release, whose progress may fall
	s.expectReady(olderThanIt, 2)
}

// generationOfKind counts the changes of the CRD of CRDMigrations.
func (s *stage) generationOfKind() int64 {
	s.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Name: "crdmigrations.godwit.dev"}, crd); err != nil {
		s.t.Fatal(err)
	}
	return crd.Generation
}

// contentOf returns the digest of an image.
func contentOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// quick are values by which the manager migrates kinds without waiting for other API servers, and with 20 writes a second.
func quick(all ...*geese) map[string]any {
	var scopes []any
	for _, g := range all {
		scopes = append(scopes, map[string]any{"group": g.group})
	}
	return map[string]any{"storageVersionMigrator": map[string]any{"scopes": scopes, "defaults": map[string]any{"settle": "1s"}}}
}

// images returns the one image of all pods.
func (s *stage) images() string {
	s.t.Helper()
	var image string
	s.await("all pods to have one image", func(context.Context) error {
		var all []string
		for _, p := range s.pods() {
			all = append(all, p.Spec.Containers[0].Image)
		}
		for _, i := range all {
			if i != all[0] {
				return fmt.Errorf("they have %s", strings.Join(all, " and "))
			}
		}
		image = all[0]
		return nil
	})
	return image
}

// awaitUnderWay waits until some objects more are migrated, and keeps which are.
func (g *geese) awaitUnderWay() {
	g.s.t.Helper()
	const some = 20
	wanted := len(g.early) + some
	g.s.await("the migration of "+g.crd()+" to be under way", func(ctx context.Context) error {
		done, err := g.migrated(ctx)
		if err != nil || len(done) < wanted {
			return fmt.Errorf("%d objects are migrated, want %d: %w", len(done), wanted, err)
		}
		g.early = done
		return nil
	})
}

// expectUnderWay fails if the migration was too quick for what the test has done meanwhile.
func (g *geese) expectUnderWay() {
	g.s.t.Helper()
	done, err := g.migrated(g.s.t.Context())
	if err != nil || len(done) == len(g.written) {
		g.s.t.Errorf("%d of %d objects are migrated already: the test has interrupted nothing: %v", len(done), len(g.written), err)
	}
	g.s.t.Logf("%s: %d of %d objects are migrated, and %d before", g.crd(), len(done), len(g.written), len(g.early))
}
