// Package order has tests only. They prove that the files of a package use each other in the order in which its doc.go names
// them, so that a reader who follows it meets nothing that is not explained yet.
package order
