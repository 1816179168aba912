// Package agent is the process on a hub: it receives commands and resources, executes them with packages source and
// target, and reports. It decides nothing about a migration. One agent is the source of some migrations and the target
// of others, at the same time.
//
// A command is checked, and stored in a Secret before its offset is committed: its signature is the manager's, it is
// for this hub, and it is newer than the last one of the migration. The agent answers a repeated command with the last
// report. A newer command ends the execution of the previous one. The agent executes orders one after another. It
// repeats the pass of an order until no cluster waits, or until the command ends by this hub's clock. After a kill, the
// agent executes the last command from its first order again: every action may be repeated.
//
// The agent decrypts resources with a key of the migration. It deletes the key when a command of a stage after
// Deploying arrives, or when no command has arrived for some time. The agent holds a bundle in memory that arrives
// before its command. A killed agent loses what it held; it reports these bundles as missing, and the source sends them
// again.
//
// # Reading order
//
// metrics.go, options.go, task.go and store.go have the settings and the stored state of an agent. arrivals.go
// reassembles resources, migration.go is one migration in memory, and report.go sends reports. open.go decides which
// messages are refused. finding.go has what passes find beside their results. work.go executes a command; source.go and
// target.go have the orders of the two roles, and deploy.go those that send and receive resources. execute.go chooses
// among them, and agent.go receives, repeats and ends. permission.go has the permissions. A file uses only files before it.
package agent
