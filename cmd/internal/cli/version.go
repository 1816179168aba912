package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// version is set for releases: -ldflags "-X PACKAGE.version=v1.2.3".
var version string

// Version is what `version -o json` prints.
type Version struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	Modified  bool   `json:"modified"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func buildInfo() Version {
	v := Version{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	output := choice{allowed: []string{"json", "yaml"}, kind: "format"}
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := buildInfo()
			switch output.value {
			case "json":
				return report.Encode(a.streams.Out, v)
			case "yaml":
				return report.EncodeYAML(a.streams.Out, v)
			}
			commit := ""
			if v.Commit != "" {
				commit = " (commit " + v.Commit + ")"
			}
			_, err := fmt.Fprintf(a.streams.Out, "godwit %s%s, %s, %s\n", v.Version, commit, v.GoVersion, v.Platform)
			return err
		},
	}
	output.addTo(c, "output", "o", "output format: json or yaml (default: a line)")
	return c
}
