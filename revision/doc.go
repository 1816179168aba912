// Package revision upgrades objects that are stashed in ControllerRevisions to a
// newer version of their API, so that the old version can be dropped.
package revision
