package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	refused "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// limits bound what one document may cost.
type limits struct {
	pages int           // of the document
	text  int           // bytes of all its text
	time  time.Duration // for all of it
}

var usual = limits{pages: 2_000, text: 5 << 20, time: time.Minute}

// turn lets one document at a time be read, since each may use that memory.
var turn = make(chan struct{}, 1)

// machines makes the WebAssembly machine of each document. PDFium is compiled once for all of them,
// which takes seconds.
var machines = sync.OnceValues(func() (pdfium.Pool, error) {
	// PDFium's exceptions need that feature of WebAssembly.
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithCloseOnContextDone(true)
	pool, err := webassembly.Init(webassembly.Config{Context: &now, MaxTotal: 1, FSConfig: wazero.NewFSConfig(), RuntimeConfig: config, Stdout: io.Discard, Stderr: io.Discard})
	debug.FreeOSMemory() // compiling leaves as much garbage as a document may use
	return pool, err
})

// now is the context of the document that has its turn. The library takes one context for all
// machines, and derives that of each machine from it when it makes the machine.
var now current

type current struct{ context.Context }

// document is a PDF in a WebAssembly machine of its own. The machine has no files, no
// network and no clock; it ends with the document.
type document struct {
	in     pdfium.Pdfium
	memory *linear
	ref    references.FPDF_DOCUMENT
	limits limits
}

// start starts PDFium for the document that has its turn. When ctx is done it stops in the
// middle of what it does. The caller closes the document.
func start(ctx context.Context, l limits) (*document, error) {
	now.Context = context.Background()
	pool, err := machines()
	if err != nil {
		return nil, fmt.Errorf("starting PDFium: %w", err)
	}
	m, err := newLinear()
	if err != nil {
		return nil, err
	}
	now.Context = experimental.WithMemoryAllocator(ctx, m)
	in, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting PDFium: %w", err), m.release())
	}
	return &document{in: in, memory: m, limits: l}, nil
}

// close ends the machine, whatever PDFium says of closing its document.
func (d *document) close() error {
	_ = d.in.Close()
	return d.memory.release()
}

// copying is the bit of a document's permissions that lets its text be copied (ISO
// 32000-1, table 22).
const copying = 1 << 4

// read reads the pages' lines and the outline.
func (d *document) read(body []byte) (f file, err error) {
	opened, err := d.in.OpenDocument(&requests.OpenDocument{File: &body})
	switch {
	case errors.Is(err, refused.ErrPassword), errors.Is(err, refused.ErrSecurity):
		return f, errEncrypted
	case err != nil:
		return f, fmt.Errorf("opening it: %w", err)
	}
	d.ref = opened.Document
	may, err := d.in.FPDF_GetDocPermissions(&requests.FPDF_GetDocPermissions{Document: d.ref})
	if err != nil {
		return f, err
	}
	if may.DocPermissions&copying == 0 {
		return f, errNoCopying
	}
	count, err := d.in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil {
		return f, err
	}
	if count.PageCount > d.limits.pages {
		return f, fmt.Errorf("%w: %d pages, and at most %d are read", errTooLong, count.PageCount, d.limits.pages)
	}
	if title, err := d.in.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: d.ref, Tag: "Title"}); err == nil { // it need not have one
		f.title = title.Value
	}
	if language, err := d.in.FPDFCatalog_GetLanguage(&requests.FPDFCatalog_GetLanguage{Document: d.ref}); err == nil {
		f.language = language.Language
	}
	left := d.limits.text
	for i := range count.PageCount {
		p, err := d.page(i, &left)
		if err != nil {
			return f, err
		}
		f.pages = append(f.pages, p)
	}
	f.outline = d.outline()
	return f, nil
}

// page reads the lines of a page in the order in which it draws them.
func (d *document) page(i int, left *int) (p []line, err error) {
	loaded, err := d.in.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: i})
	if errors.Is(err, refused.ErrPage) { // readers too show the other pages
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := d.in.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: requests.Page{ByReference: &loaded.Page}})
	if err != nil {
		return nil, err
	}
	count, err := d.in.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text.TextPage})
	if err != nil {
		return nil, err
	}
	if count.Count > 0 {
		if *left -= count.Count; *left < 0 {
			return nil, fmt.Errorf("%w: its text is over %d MB", errTooLong, d.limits.text>>20)
		}
		whole, err := d.in.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: text.TextPage, Count: count.Count})
		if err != nil {
			return nil, err
		}
		if p, err = d.lines(text.TextPage, whole.Text); err != nil {
			return nil, err
		}
	}
	if _, err := d.in.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage}); err != nil {
		return nil, err
	}
	_, err = d.in.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
	return p, err
}
