-- +goose Up
ALTER TABLE catalog_products ADD COLUMN missing_in BIGINT NOT NULL DEFAULT 0; -- number of the crawl in which its page answered 404 for the first time; 0: it is there, or gone
