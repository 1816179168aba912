// Package remedy converts the fixes of the libraries to commands ([Writer]): a library does not know the user's command
// line.
package remedy
