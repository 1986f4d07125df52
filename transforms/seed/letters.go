package seed

import "github.com/newsfork/seed-engine/io/ledger"

func letterOfFile(cfg Config, key, kind string, retryable bool, indices []int, err error) ledger.DeadLetter {
	l := ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID, Stage: "extract", Kind: kind, Retryable: retryable,
		Input: ledger.Input{File: key, Indices: indices}}
	if err != nil {
		l.Error = err.Error()
	}
	return l
}

func letterOfDomain(cfg Config, wi wish, name string) ledger.DeadLetter {
	index := wi.index
	return ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID,
		Input: ledger.Input{File: wi.file, Index: &index, DomainID: wi.id, Key: metadataKey(wi.in, name), URL: "https://" + name + "/"}}
}
