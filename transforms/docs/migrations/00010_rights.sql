-- +goose Up
-- What robots.txt, the response and the page say about use: the lines as JSON, and what follows for each purpose.
-- Empty: it was not read, or by an older version.
ALTER TABLE docs_pages ADD COLUMN rights TEXT NOT NULL DEFAULT '';
ALTER TABLE docs_pages ADD COLUMN rights_search TEXT NOT NULL DEFAULT '';
ALTER TABLE docs_pages ADD COLUMN rights_ai_input TEXT NOT NULL DEFAULT '';
ALTER TABLE docs_pages ADD COLUMN rights_ai_train TEXT NOT NULL DEFAULT '';
ALTER TABLE docs_pages ADD COLUMN rights_archive TEXT NOT NULL DEFAULT '';
ALTER TABLE docs_robots ADD COLUMN header TEXT NOT NULL DEFAULT '{}'; -- those that say something about use: JSON
ALTER TABLE docs_robots ADD COLUMN sha256 TEXT NOT NULL DEFAULT ''; -- of the body as received
ALTER TABLE docs_robots ADD COLUMN final_url TEXT NOT NULL DEFAULT '';
