-- +goose Up
ALTER TABLE catalog_crawls ADD COLUMN list_pages BIGINT NOT NULL DEFAULT 0; -- number of list pages of the latest crawl that was finished; 0: not known
