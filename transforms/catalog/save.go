package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// saveBatch is how many products a saver puts into one transaction.
const saveBatch = 128

// dbSaver writes products to the database: SaveProduct → nothing.
func (v *visit) dbSaver() *stage {
	return &stage{name: "DbSaver", takes: KindSaveProduct, size: v.cfg.Savers, batch: saveBatch, settle: v.settleSaved,
		work: func(context.Context, Task) ([]Task, error) { return nil, nil }}
}

// settleSaved writes what a saver took in one transaction, together with the
// end of their tasks: no product is saved twice, and none is lost.
func (v *visit) settleSaved(ctx context.Context, results []result) error {
	products := make([]product, 0, len(results))
	for i := range results {
		t := results[i].task.(SaveProduct)
		p, err := asRow(t.ProductDetail)
		if err != nil {
			results[i].err = &failure{kind: "save_failed", final: true, err: err}
			continue
		}
		p.from = t.entry()
		products = append(products, p)
	}
	if len(products) == 0 {
		return nil
	}
	added, changed, err := v.journal.saved(ctx, products, v.clock())
	if err != nil {
		return fmt.Errorf("saving %d products: %w", len(products), err)
	}
	v.state.Stats.productsSaved.Add(int64(len(products)))
	v.state.Stats.productsNew.Add(int64(added))
	v.state.Stats.productsChanged.Add(int64(changed))
	for _, p := range products {
		v.forgive(ctx, p.from)
	}
	return nil
}

// product is a row of catalog_products.
type product struct {
	key, url, detail, hash string
	from                   entry
}

// asRow encodes a product. The hash is of its fields only: the same product
// under another address has not changed.
func asRow(p ProductDetail) (product, error) {
	detail, err := json.Marshal(p.Fields) // keys come out sorted
	if err != nil {
		return product{}, fmt.Errorf("encoding the product: %w", err)
	}
	sum := sha256.Sum256(detail)
	return product{key: p.Key, url: p.URL, detail: string(detail), hash: hex.EncodeToString(sum[:])}, nil
}
