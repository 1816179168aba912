package e2e_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// patience is for a busy machine.
const patience = 4 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_HUB") == "" {
		fmt.Println("skipped: these tests need Apache Kafka: run `make e2e-hub`")
		return
	}
	os.Exit(m.Run())
}
