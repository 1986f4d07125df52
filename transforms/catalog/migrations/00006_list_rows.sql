-- +goose Up
ALTER TABLE catalog_tasks ADD COLUMN list_row TEXT NOT NULL DEFAULT ''; -- JSON: what the product's row of the list says; '': nothing
