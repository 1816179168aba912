package artifact

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0":      "",
		"v1.2.3-rc.1": "",
		"":            "no version is given",
		"0.1.0":       "is not a semantic version",
		"v0.1":        "is incomplete: write v0.1.0",
		"v0.1.0+a":    "has build metadata",
		"v2.0.0":      "have to end in /v2",
		"v0.1.0;ls":   "is not a semantic version",
		"../v0.1.0":   "is not a semantic version",
	} {
		err := CheckVersion(version)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than one line: %v", version, err)
		}
	}
}

func TestParsePlatforms(t *testing.T) {
	if all, err := ParsePlatforms(""); err != nil || !slices.Equal(all, Platforms) {
		t.Errorf("none: %v, %v", all, err)
	}
	if two, err := ParsePlatforms("linux/arm64,linux/amd64"); err != nil || len(two) != 2 {
		t.Errorf("two: %v, %v", two, err)
	}
	for _, wrong := range []string{"linux", "linux/amd64,plan9/386", ","} {
		if got, err := ParsePlatforms(wrong); err == nil {
			t.Errorf("%q: %v", wrong, got)
		}
	}
}

func TestNames(t *testing.T) {
	linux, windows := Platform{"linux", "amd64"}, Platform{"windows", "arm64"}
	for _, pair := range [][2]string{
		{linux.Archive(Program, "v0.1.0"), "godwit_v0.1.0_linux_amd64.tar.gz"},
		{windows.Archive(Plugin, "v0.1.0"), "kubectl-godwit_v0.1.0_windows_arm64.zip"},
		{windows.Executable(Plugin), "kubectl-godwit.exe"},
		{linux.SBOM("v0.1.0"), "godwit_v0.1.0_linux_amd64.cdx.json"},
		{Chart("v0.1.0-rc.1"), "godwit-0.1.0-rc.1.tgz"},
		{Download("v0.1.0", "a"), "https://github.com/godwit-dev/godwit/releases/download/v0.1.0/a"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s, want %s", pair[0], pair[1])
		}
	}
}
