-- +goose Up
DELETE FROM catalog_plain_keys WHERE EXISTS (SELECT 1 FROM catalog_products AS p WHERE p.site = catalog_plain_keys.site AND p.product_key = catalog_plain_keys.plain);
UPDATE catalog_products SET product_key = k.plain, url = replace(url, '#' || k.was, '#' || k.plain)
    FROM catalog_plain_keys AS k WHERE k.site = catalog_products.site AND k.was = catalog_products.product_key;
UPDATE catalog_changes SET product_key = k.plain FROM catalog_plain_keys AS k WHERE k.site = catalog_changes.site AND k.was = catalog_changes.product_key;
UPDATE catalog_tags SET product_key = k.plain FROM catalog_plain_keys AS k WHERE k.site = catalog_tags.site AND k.was = catalog_tags.product_key;
UPDATE catalog_product_images SET product_key = k.plain FROM catalog_plain_keys AS k WHERE k.site = catalog_product_images.site AND k.was = catalog_product_images.product_key;
-- What waits has the keys of rows as they were written: such a crawl begins from its first page.
UPDATE catalog_crawls SET file = 'keys' WHERE finished_at = 0
    AND EXISTS (SELECT 1 FROM catalog_tasks AS t WHERE t.site = catalog_crawls.site AND t.list_row LIKE '{"key":"%e+%"%');
DROP TABLE catalog_plain_keys;
