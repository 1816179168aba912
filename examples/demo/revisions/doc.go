// Package revisions is the story of KubeVirt's ControllerRevisions.
package revisions
