package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
)

// Died is the kind of the dead letters of units at which processes died: see Deaths.
const Died = "process_died"

// Deaths are the processes that died while they read the documents of a unit, which is one page, or all that
// is read of one host. Each left the empty object begun/{job}/{unit}/{process}, or {process}.alone if it read
// no other document meanwhile.
type Deaths struct {
	Count int
	Alone bool // one of them read nothing else
}

const begunPrefix, aloneSuffix = "begun/", ".alone"

// Unit is the id of the unit to which the input of a dead letter belongs.
func Unit(job string, in Input) string {
	sum := sha256.Sum256([]byte(job + "\x00" + in.Source + "\x00" + Redact(in.URL)))
	return hex.EncodeToString(sum[:12])
}

func begunKey(job, unit, process string, alone bool) string {
	key := begunPrefix + job + "/" + unit + "/" + process
	if alone {
		key += aloneSuffix
	}
	return key
}

// SayBegun records that a process reads the documents of a unit.
func SayBegun(ctx context.Context, s store.Store, job, unit, process string, alone bool) error {
	return store.Write(ctx, s, begunKey(job, unit, process, alone), nil, store.PutOptions{ContentType: "text/plain"})
}

// EndBegun records that it has read them.
func EndBegun(ctx context.Context, s store.Store, job, unit, process string, alone bool) error {
	return store.Remove(ctx, s, begunKey(job, unit, process, alone))
}

// ListDeaths returns, by unit, what the other processes of a job have begun to read and not ended. Each unit
// is one process's at a time, so whoever works at one now knows that those processes have died.
func ListDeaths(ctx context.Context, s store.Store, job, process string) (map[string]Deaths, error) {
	all := map[string]Deaths{}
	for o, err := range s.List(ctx, begunPrefix+job+"/") {
		if err != nil {
			return nil, fmt.Errorf("listing what processes died at: %w", err)
		}
		unit, by, ok := strings.Cut(strings.TrimPrefix(o.Key, begunPrefix+job+"/"), "/")
		by, alone := strings.CutSuffix(by, aloneSuffix)
		if ok && by != process {
			d := all[unit]
			all[unit] = Deaths{d.Count + 1, d.Alone || alone}
		}
	}
	return all, nil
}

// ForgetDeaths lets the inputs of dead letters be tried again, whatever died at them.
func ForgetDeaths(ctx context.Context, s store.Store, letters []DeadLetter) error {
	for _, d := range letters {
		if d.Kind != Died {
			continue
		}
		if err := ForgetUnit(ctx, s, d.Job, Unit(d.Job, d.Input)); err != nil {
			return err
		}
	}
	return nil
}

// ForgetUnit is ForgetDeaths for one unit.
func ForgetUnit(ctx context.Context, s store.Store, job, unit string) error {
	var all []error
	for o, err := range s.List(ctx, begunKey(job, unit, "", false)) {
		if err == nil {
			err = store.Remove(ctx, s, o.Key)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
