package pipeline

import (
	"errors"
	"io/fs"
	"os"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/testdata"
)

func (o *Options) filtered() bool { return o.Country != "" || o.Category != "" || o.Date != "" }

// wants says whether the filters let a partition through.
func (o *Options) wants(p hive.Partition) bool {
	return (o.Country == "" || p.Country == o.Country) && (o.Category == "" || p.Category == o.Category) && (o.Date == "" || p.Date == o.Date)
}

func (o *Options) noMatch() error {
	what, look := "raw file", "`--until=list` without filters shows what there is"
	if o.Job == "migrate" {
		what, look = "legacy file", "a dry run without filters shows what there is"
	}
	return usagef("no %s matches --country=%q --category=%q --date=%q; %s", what, o.Country, o.Category, o.Date, look)
}

// sampleMatches looks for the filters in the sample bucket and in an earlier
// copy of it, before a copy is made.
func (o *Options) sampleMatches() error {
	bucket, err := fs.Sub(testdata.Bucket, "bucket")
	if err != nil {
		return err
	}
	parse := hive.ParseRaw
	if o.Job == "migrate" {
		parse = hive.ParseLegacy
	}
	for _, at := range []fs.FS{bucket, os.DirFS(o.Store)} {
		found := false
		for _, root := range []string{"datasets", "research"} {
			err := fs.WalkDir(at, root, func(key string, _ fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return fs.SkipDir
				}
				if err != nil {
					return err
				}
				if r, ok := parse(key); ok && o.wants(r.Partition) {
					found = true
					return fs.SkipAll
				}
				return nil
			})
			if err != nil {
				return usagef("reading ./%s: %w", o.Store, err)
			}
		}
		if found {
			return nil
		}
	}
	return o.noMatch()
}
