-- +goose Up
-- SQLite keeps its types.
DROP INDEX pages_changed;
CREATE INDEX docs_pages_changed ON docs_pages (changed_at);
