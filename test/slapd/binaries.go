package slapd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrMissing means that this machine has no slapd.
var ErrMissing = errors.New("find slapd: it is not installed, and bin/slapd does not have it: run tools/slapd/build.sh, or apt-get install slapd")

// Required reports whether a missing slapd is a failure, as in CI.
func Required() bool { return os.Getenv("CI") == "true" }

// installation has the paths of slapd's parts.
type installation struct {
	program string
	// modules and schemas are folders. Without modules, the backend is compiled into the program.
	modules, schemas string
	// libraries is the folder with the libraries of an unpacked program.
	libraries string
}

// find returns an installed slapd, or else the unpacked one.
func find() (installation, error) {
	candidates := []string{"/usr/sbin/slapd", "/usr/local/libexec/slapd"}
	if program, err := exec.LookPath("slapd"); err == nil {
		candidates = append([]string{program}, candidates...)
	}
	for _, program := range candidates {
		if i, ok := installationAt("/", program); ok {
			return i, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return installation{}, err
	}
	for {
		root := filepath.Join(dir, "bin", "slapd")
		if i, ok := installationAt(root, filepath.Join(root, "usr", "sbin", "slapd")); ok {
			libraries, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu*"))
			if err == nil && len(libraries) > 0 {
				i.libraries = libraries[0]
			}
			return i, nil
		}
		if dir == filepath.Dir(dir) {
			return installation{}, ErrMissing
		}
		dir = filepath.Dir(dir)
	}
}

// installationAt returns the installation in a root folder. It returns false if the program or its schemas are missing.
func installationAt(root, program string) (installation, bool) {
	if !exists(program) {
		return installation{}, false
	}
	i := installation{program: program, modules: filepath.Join(root, "usr", "lib", "ldap")}
	if !exists(i.modules) {
		i.modules = ""
	}
	for _, schemas := range []string{"etc/ldap/schema", "etc/openldap/schema", "usr/local/etc/openldap/schema"} {
		i.schemas = filepath.Join(root, filepath.FromSlash(schemas))
		if exists(filepath.Join(i.schemas, "inetorgperson.schema")) {
			return i, true
		}
	}
	return installation{}, false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
