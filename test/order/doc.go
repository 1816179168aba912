// Package order has tests only. They prove that each file of a package uses only files that its doc.go names earlier, so that
// a reader who follows the reading order has read every declaration that a file uses.
package order
