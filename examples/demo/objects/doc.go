// Package objects is the story of custom resources that are migrated.
package objects
