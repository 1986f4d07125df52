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

// letterOfDomain is about the metadata object key of a domain; what else a
// person wants to know of it (kind, file, index, error) the caller adds.
func letterOfDomain(cfg Config, key, id, name string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: cfg.Lane.RunID,
		Input: ledger.Input{DomainID: id, Key: key, URL: "https://" + name + "/"}}
}

func letterOfWish(cfg Config, wi wish, name string) ledger.DeadLetter {
	l := letterOfDomain(cfg, metadataKey(wi.in, name), wi.id, name)
	l.Input.File, l.Input.Index = wi.file, &wi.index
	return l
}
