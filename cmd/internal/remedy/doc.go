// Package remedy words the fixes that the libraries make as commands ([Writer]): a library does
// not know the user's command line.
package remedy
