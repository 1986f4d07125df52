package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	memory int           // bytes that PDFium may use
	pages  int           // of the document
	text   int           // bytes of all its text
	time   time.Duration // for all of it
}

var usual = limits{memory: 256 << 20, pages: 2_000, text: 5 << 20, time: time.Minute}

// turn lets one document at a time be read, since each may use limits.memory.
var turn = make(chan struct{}, 1)

// compiled keeps PDFium as machine code after the first document of the process: to
// compile it takes a second or more.
var compiled = sync.OnceValue(wazero.NewCompilationCache)

// document is a PDF in a WebAssembly machine of its own. The machine has no files, no
// network and no clock; it ends with the document.
type document struct {
	pool   pdfium.Pool
	in     pdfium.Pdfium
	ref    references.FPDF_DOCUMENT
	limits limits
}

// start starts PDFium. When ctx is done it stops in the middle of what it does. The
// caller closes the document, also after an error.
func start(ctx context.Context, l limits) (d *document, err error) {
	d = &document{limits: l}
	// PDFium's exceptions need that feature of WebAssembly.
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(uint32(l.memory >> 16)).WithCloseOnContextDone(true).WithCompilationCache(compiled()) //nolint:gosec // a constant
	d.pool, err = webassembly.Init(webassembly.Config{Context: ctx, MaxTotal: 1, FSConfig: wazero.NewFSConfig(), RuntimeConfig: config, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return d, fmt.Errorf("starting PDFium: %w", err)
	}
	if d.in, err = d.pool.GetInstanceWithContext(ctx); err != nil {
		return d, fmt.Errorf("starting PDFium: %w", err)
	}
	return d, nil
}

// close ends the machine.
func (d *document) close() error {
	if d.pool == nil {
		return nil
	}
	return d.pool.Close()
}

// copying is the bit of a document's permissions that lets its text be copied (ISO
// 32000-1, table 22).
const copying = 1 << 4

// read reads the pages' lines and the outline.
func (d *document) read(body []byte) (f file, err error) {
	opened, err := d.in.OpenDocument(&requests.OpenDocument{File: &body})
	switch {
	case errors.Is(err, refused.ErrPassword), errors.Is(err, refused.ErrSecurity):
		return f, ErrEncrypted
	case err != nil:
		return f, fmt.Errorf("opening it: %w", err)
	}
	d.ref = opened.Document
	may, err := d.in.FPDF_GetDocPermissions(&requests.FPDF_GetDocPermissions{Document: d.ref})
	if err != nil {
		return f, err
	}
	if may.DocPermissions&copying == 0 {
		return f, ErrNoCopying
	}
	count, err := d.in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil {
		return f, err
	}
	if count.PageCount > d.limits.pages {
		return f, fmt.Errorf("%w: %d pages, and at most %d are read", ErrTooLong, count.PageCount, d.limits.pages)
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
			return nil, fmt.Errorf("%w: its text is over %d MB", ErrTooLong, d.limits.text>>20)
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
