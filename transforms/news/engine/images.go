package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/images"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// images fetches the images of the stored articles, of the newest first. It comes after the articles, so that these
// never wait for it, and a run that was killed leaves the rest to the next one.
func (v *visit) images(ctx context.Context) error {
	if !v.Images || v.Reparse {
		return nil
	}
	articles, err := raw.WithImages(ctx, v.DB, v.p.ID())
	if err != nil {
		return err
	}
	known, err := raw.Images.Known(ctx, v.DB, v.p.ID())
	if err != nil {
		return err
	}
	f := &images.Fetcher{Table: raw.Images, Of: v.p.ID(), Crawl: v.now().UnixMicro(), DB: v.DB, Store: v.Store, Log: v.log, Now: v.now, Get: v.getImage, Count: func(name string, n int64) {
		v.result.Images[name] += n
		v.count()
	}}
	v.result.Images = map[string]int64{}
	for _, a := range articles {
		if (v.Purpose == rights.AIInput || v.Purpose == rights.AITrain) && strings.Contains(a.Rights, rights.NoImages) {
			continue
		}
		wanted := slices.DeleteFunc(a.Images, func(at string) bool { return !due(known[at], a, v.now()) })
		if err := f.Fetch(ctx, wanted, a.URL); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether an image is requested: one that was received, if its article changed since; one that was not,
// ever more rarely.
func due(i images.Known, a raw.Pictured, now time.Time) bool {
	switch {
	case i.URL == "":
		return true
	case i.Hash != "":
		return a.ChangedAt.After(i.Asked)
	}
	return now.Sub(i.Asked) >= max(time.Hour, i.Asked.Sub(a.CollectedAt))
}

// getImage requests an image. What ends the provider is no failure of the image.
func (v *visit) getImage(ctx context.Context, r polite.Request) (*web.Response, error) {
	resp, err := v.client.Get(ctx, r)
	if err == nil {
		return resp, nil
	}
	if err = v.ended(ctx, err); ctx.Err() != nil || errors.As(err, new(*errStop)) {
		return nil, err
	}
	kind := code(err)
	if kind == "unreadable" { // of no request: the database's
		return nil, err
	}
	return nil, &images.Failed{Kind: kind, Final: slices.Contains([]string{"robots_deny", string(web.KindBlocked), string(web.KindRedirect)}, kind), Err: err}
}
