package segment

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/newsfork/seed-engine/io/store"
)

// Index is what a store has under a root when a run begins.
type Index struct {
	s       store.Store
	root    string
	folders map[string][]string // their keys
	keep    func(string) bool   // which names of results commits have; nil: all
	ofAll   map[string][]Commit // the commits of folders that any lane can share
}

// List lists the folders of all lanes under root.
func List(ctx context.Context, s store.Store, root string) (*Index, error) {
	folders, err := list(ctx, s, root)
	return &Index{s: s, root: root, folders: folders}, err
}

// WithoutNames returns an index whose commits say which partitions they have results of,
// but not the results' names, which are most of a commit.
func (x *Index) WithoutNames() *Index {
	return x.keeping(func(string) bool { return false })
}

// Of yields the commits that have results of a name, which say only which of its
// partitions they have. lane is the number of the name's lane of a number of lanes: the
// commits of other lanes are not read.
func (x *Index) Of(ctx context.Context, name string, lane func(of int) int) iter.Seq2[Commit, error] {
	own := func(dir string) bool {
		n, of, ok := parseLane(x.root, dir)
		return !ok || lane(of) == n
	}
	return func(yield func(Commit, error) bool) {
		for c, err := range x.keeping(func(s string) bool { return s == name }).commits(ctx, own) {
			c.Done = slices.DeleteFunc(c.Done, func(d Done) bool { return len(d.Names) == 0 })
			if (err != nil || len(c.Done) > 0) && !yield(c, err) {
				return
			}
		}
	}
}

func (x *Index) keeping(names func(string) bool) *Index {
	some := *x
	some.keep, some.ofAll = names, nil
	return &some
}

// Folders returns the folders of lanes, sorted.
func (x *Index) Folders() []string { return slices.Sorted(maps.Keys(x.folders)) }

// commitsOf returns the commits of a folder. Those of a folder that any lane can share are
// kept for the next lane.
func (x *Index) commitsOf(ctx context.Context, dir string) ([]Commit, error) {
	if commits, ok := x.ofAll[dir]; ok {
		return commits, nil
	}
	f, err := read(ctx, x.s, x.folders[dir], x.keep)
	if err != nil {
		return nil, err
	}
	commits, _ := f.valid()
	if _, _, ok := parseLane(x.root, dir); !ok && x.keep == nil {
		if x.ofAll == nil {
			x.ofAll = map[string][]Commit{}
		}
		x.ofAll[dir] = commits
	}
	return commits, nil
}

// commits yields the commits of the folders that admit wants.
func (x *Index) commits(ctx context.Context, admit func(dir string) bool) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		for _, dir := range x.Folders() {
			if !admit(dir) {
				continue
			}
			commits, err := x.commitsOf(ctx, dir)
			if err != nil {
				yield(Commit{}, err)
				return
			}
			for _, c := range commits {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// Commits yields all commits, by folder and then from the oldest on. It ends after an
// error.
func (x *Index) Commits(ctx context.Context) iter.Seq2[Commit, error] {
	return x.commits(ctx, func(string) bool { return true })
}

// Open begins to write to the folder of lane n of of. It calls each for every commit that
// can have results of the lane: those of this folder, and those of other lanes with
// hosts in common, because an earlier run may have had another number of lanes. Open
// then sweeps what is left in the folder without a commit. The caller must have the
// lane's lease.
func (x *Index) Open(ctx context.Context, n, of int, runID string, each func(Commit)) (*Log, error) {
	dir := Lane(x.root, n, of)
	for c, err := range x.sharedWith(ctx, n, of, dir) {
		if err != nil {
			return nil, err
		}
		each(c)
	}
	return Open(ctx, x.s, dir, runID, each)
}

// Shared yields the commits that can have results of lane n of of, as Open does.
func (x *Index) Shared(ctx context.Context, n, of int) iter.Seq2[Commit, error] {
	return x.sharedWith(ctx, n, of, "")
}

func (x *Index) sharedWith(ctx context.Context, n, of int, without string) iter.Seq2[Commit, error] {
	return x.commits(ctx, func(d string) bool { return d != without && shared(x.root, d, n, of) })
}
