package kafka

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrMissing means that this machine has no Kafka.
var ErrMissing = errors.New("find Apache Kafka")

// Required reports whether a missing broker is a failure, as in CI.
func Required() bool { return os.Getenv("CI") == "true" }

// installation has the paths of the broker's parts.
type installation struct {
	java string
	// classpath names all jars of a folder.
	classpath string
}

func find() (installation, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return installation{}, fmt.Errorf("%w: no java in PATH: install Java 17 or later (apt-get install openjdk-17-jre-headless), then run `make kafka`", ErrMissing)
	}
	dir, err := os.Getwd()
	if err != nil {
		return installation{}, err
	}
	for {
		jars := filepath.Join(dir, "bin", "kafka", "jars")
		if info, err := os.Stat(jars); err == nil && info.IsDir() {
			return installation{java: java, classpath: filepath.Join(jars, "*")}, nil
		}
		if dir == filepath.Dir(dir) {
			return installation{}, fmt.Errorf("%w: no bin/kafka above the working directory: run `make kafka`", ErrMissing)
		}
		dir = filepath.Dir(dir)
	}
}

// classes are the programs of Kafka's bin folder that [WriteTools] knows.
var classes = map[string]string{
	"kafka-acls.sh":    "org.apache.kafka.tools.AclCommand",
	"kafka-configs.sh": "kafka.admin.ConfigCommand",
}

// WriteTools writes Kafka's kafka-acls.sh and kafka-configs.sh into a folder, as a distribution has them. They log errors only.
func WriteTools(folder string) error {
	installed, err := find()
	if err != nil {
		return err
	}
	for name, class := range classes {
		script := fmt.Sprintf("#!/bin/sh\nexec %q -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp %q %s \"$@\"\n",
			installed.java, installed.classpath, class)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// command returns a command that runs a class of Kafka with 256 MB of heap, which are enough for a test. Kafka's own default is 1 GB.
func (i installation) command(class string, args ...string) *exec.Cmd {
	return exec.Command(i.java, append([]string{
		"-Xmx256m", "-Xms64m", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", i.classpath, class,
	}, args...)...)
}
