// Package pdf turns PDF documents into Markdown with headings and the place of each
// page. PDFium reads them, in a WebAssembly machine with bounds on memory and time: a
// hostile file can only fail itself. No promise: see docs/library.md.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// Why a document is skipped.
var (
	errEncrypted = errors.New("the PDF opens with a password only")
	errNoCopying = errors.New("the PDF does not allow its text to be copied")
	errDamaged   = errors.New("the PDF is damaged")
	errMemory    = errors.New("the PDF needs too much memory")
	errTooLong   = errors.New("the PDF is too long")
	errTooSlow   = errors.New("the PDF takes too long to read")
	errNoText    = errors.New("the PDF has no text (its pages may be pictures)")
	errNoLetters = errors.New("the PDF does not say which letters its text has")
)

// Refused reports whether an error is one of these.
func Refused(err error) bool {
	for _, why := range []error{errEncrypted, errNoCopying, errDamaged, errMemory, errTooLong, errTooSlow, errNoText, errNoLetters} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// Read reads a document. The error is a refusal, or that ctx was done.
func Read(ctx context.Context, body []byte) (content.Page, error) {
	f, err := read(ctx, body, usual)
	if err != nil {
		return content.Page{}, err
	}
	return f.page()
}

func read(ctx context.Context, body []byte, l limits) (f file, err error) {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return f, fmt.Errorf("waiting to read a PDF: %w", ctx.Err())
	}
	defer func() { <-turn }()
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d, err := start(within, l)
	if err != nil {
		return f, err
	}
	// The limit begins here: to start PDFium for the first time takes longer than to read
	// most documents.
	defer time.AfterFunc(l.time, func() { cancel(errTooSlow) }).Stop()
	f, err = d.read(body)
	if cerr := d.close(); cerr != nil {
		return f, fmt.Errorf("releasing the memory of a PDF: %w", cerr)
	}
	switch {
	case ctx.Err() != nil:
		return f, fmt.Errorf("reading a PDF: %w", ctx.Err())
	case within.Err() != nil: // what failed then may look like a damaged page
		return f, fmt.Errorf("%w: over %v", errTooSlow, l.time)
	case err == nil || Refused(err):
		return f, err
	case d.memory.refused:
		return f, fmt.Errorf("%w: over %d MB", errMemory, memory>>20)
	}
	cause, _, _ := strings.Cut(err.Error(), "\n")
	return f, fmt.Errorf("%w: %s", errDamaged, cause)
}
