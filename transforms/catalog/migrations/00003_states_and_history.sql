-- +goose Up
ALTER TABLE catalog_products ADD COLUMN state TEXT NOT NULL DEFAULT 'unchanged'; -- new, changed, unchanged, gone or back, by the latest crawl
ALTER TABLE catalog_products ADD COLUMN gone_at BIGINT NOT NULL DEFAULT 0; -- 0: it is not gone
ALTER TABLE catalog_products ADD COLUMN kept TEXT NOT NULL DEFAULT '{}'; -- JSON: fields whose page lacks them, whose value is an earlier one, and since when
ALTER TABLE catalog_products ADD COLUMN seen_in BIGINT NOT NULL DEFAULT 0; -- number of the crawl that saved it last

ALTER TABLE catalog_crawls ADD COLUMN number BIGINT NOT NULL DEFAULT 0; -- of the site's latest crawl
ALTER TABLE catalog_crawls ADD COLUMN partial INTEGER NOT NULL DEFAULT 0; -- 1: the list was not read to its end

-- Every value that a product has lost to another one, and by which run.
CREATE TABLE catalog_changes (
    site        TEXT   NOT NULL,
    product_key TEXT   NOT NULL,
    changed_at  BIGINT NOT NULL,
    field       TEXT   NOT NULL,
    was         TEXT,            -- JSON; NULL: it had none
    became      TEXT,            -- JSON; NULL: it has none
    run_id      TEXT   NOT NULL,
    PRIMARY KEY (site, product_key, changed_at, field)
);
CREATE INDEX catalog_changes_time ON catalog_changes (changed_at);
