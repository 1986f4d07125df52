-- +goose Up
ALTER TABLE catalog_crawls ADD COLUMN file TEXT NOT NULL DEFAULT ''; -- hash of what the site's file says about the list; '': an earlier version of the program began the crawl
ALTER TABLE catalog_crawls ADD COLUMN first_reading BIGINT NOT NULL DEFAULT 0; -- number of list pages of the first reading, once the list is read again; 0: it is not
