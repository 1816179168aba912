// Package revisions is the story of an upgrade of KubeVirt's ControllerRevisions.
package revisions
