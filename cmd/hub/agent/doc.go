// Package agent is the process on a hub: it receives commands and resources, has packages
// source and target do what they say, and reports. It decides nothing about a migration.
// One agent is the source of some migrations and the target of others, at the same time.
//
// A command is checked, and stored in a Secret before its offset is committed: its
// signature is the manager's, it is for this hub, and it is newer than the last one of the
// migration. A repeated command is answered with the last report. A newer one ends the
// execution of the one before. Orders are executed one after another, each by passes until
// no cluster waits, or until the command ends by this hub's clock. An agent that was killed
// executes the last command from its first order again, since every action may be
// repeated.
//
// Resources are opened with a key of the migration, which exists until a command of a later
// stage than Deploying arrives, or none at all. A bundle that arrives before its command is
// held in memory. What a killed agent had in memory is missing, named in a report, and sent
// again.
//
// # Reading order
//
// metrics.go, options.go, task.go and store.go are what an agent has and keeps; arrivals.go
// is for resources that arrive, migration.go is one migration in memory, and report.go what
// it says. open.go decides which messages are refused. work.go executes a command; source.go
// and target.go have the orders of the two roles, and deploy.go those by which resources
// travel. execute.go chooses among them, and agent.go receives, repeats and ends. permission.go
// is what RBAC has to allow. A file uses
// only files before it.
package agent
