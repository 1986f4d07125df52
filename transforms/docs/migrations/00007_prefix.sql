-- +goose Up
-- All tables have the job's prefix, so that they do not collide with another program's.
ALTER TABLE pages RENAME TO docs_pages;
ALTER TABLE links RENAME TO docs_links;
ALTER TABLE chunks RENAME TO docs_chunks;
ALTER TABLE runs RENAME TO docs_runs;
ALTER TABLE blocked_urls RENAME TO docs_blocked_urls;
DROP INDEX pages_queue;
CREATE INDEX docs_pages_queue ON docs_pages (provider, session, status, depth, seq);
DROP INDEX chunks_id;
CREATE INDEX docs_chunks_id ON docs_chunks (id);
CREATE VIEW blocked_urls AS SELECT * FROM docs_blocked_urls; -- the name that the requirements give it
