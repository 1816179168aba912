package frame

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version and commit are set by -ldflags "-X PACKAGE.version=v1.2.3 -X PACKAGE.commit=HASH". A release sets the commit,
// which the go command does not know of a module that it has downloaded.
var version, commit string

// Version is the build information of the program.
type Version struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	Modified  bool   `json:"modified"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Build returns the build information that the Go linker and the release wrote into the program.
func Build() Version {
	v := Version{Version: version, Commit: commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = cmp.Or(v.Commit, s.Value)
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
