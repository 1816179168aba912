package hub

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
)

// StartBroker starts a broker in this process, which keeps messages in memory. The caller stops it.
func StartBroker() (addresses []string, stop func(), err error) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil {
		return nil, nil, fmt.Errorf("start a broker: %w", err)
	}
	return broker.ListenAddrs(), broker.Close, nil
}
