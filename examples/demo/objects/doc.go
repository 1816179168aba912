// Package objects is the story of a migration of custom resources.
package objects
