package seed

import "github.com/newsfork/seed-engine/io/ledger"

func fileDeadLetter(cfg Config, key, kind string, retryable bool, indices []int, err error) ledger.DeadLetter {
	d := ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID, Stage: "extract", Kind: kind, Retryable: retryable,
		Input: ledger.Input{File: key, Indices: indices}}
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// domainDeadLetter makes a dead letter about the metadata object key of a domain. The
// caller adds kind, file, index and error.
func domainDeadLetter(cfg Config, key, id, name string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID,
		Input: ledger.Input{DomainID: id, Key: key, URL: homeOf(name)}}
}

func homeOf(name string) string { return "https://" + name + "/" }

func requestDeadLetter(cfg Config, q request, name string) ledger.DeadLetter {
	d := domainDeadLetter(cfg, metadataKey(q.in, name), q.id, name)
	d.Input.File, d.Input.Index = q.file, &q.index
	return d
}
