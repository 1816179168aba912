// Package controller has the controllers that Upjet generates.
package controller
