-- +goose Up
-- Columns have the types of PostgreSQL: a time is a timestamptz, NULL for none.
DROP VIEW docs_pages_view;
DROP VIEW docs_chunks_view;
DROP VIEW docs_links_view;
DROP VIEW docs_runs_view;
DROP VIEW docs_changes_view;
DROP VIEW blocked_urls;
DROP INDEX pages_changed;
ALTER TABLE docs_sessions
    ALTER started_at TYPE TIMESTAMPTZ USING to_timestamp(started_at / 1000000.0),
    ALTER active_at TYPE TIMESTAMPTZ USING to_timestamp(active_at / 1000000.0),
    ALTER finished_at DROP DEFAULT, ALTER finished_at DROP NOT NULL, ALTER finished_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(finished_at, 0) / 1000000.0);
ALTER TABLE docs_providers
    ALTER disabled_at DROP DEFAULT, ALTER disabled_at DROP NOT NULL, ALTER disabled_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(disabled_at, 0) / 1000000.0);
ALTER TABLE docs_runs
    ALTER started_at TYPE TIMESTAMPTZ USING to_timestamp(started_at / 1000000.0),
    ALTER active_at TYPE TIMESTAMPTZ USING to_timestamp(active_at / 1000000.0),
    ALTER finished_at DROP DEFAULT, ALTER finished_at DROP NOT NULL, ALTER finished_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(finished_at, 0) / 1000000.0),
    ALTER stats DROP DEFAULT, ALTER stats TYPE JSONB USING stats::jsonb, ALTER stats SET DEFAULT '{}';
ALTER TABLE docs_pages
    ALTER counted DROP DEFAULT, ALTER counted TYPE BOOLEAN USING counted <> 0, ALTER counted SET DEFAULT FALSE,
    ALTER discovered_at TYPE TIMESTAMPTZ USING to_timestamp(discovered_at / 1000000.0),
    ALTER requested_at DROP DEFAULT, ALTER requested_at DROP NOT NULL, ALTER requested_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(requested_at, 0) / 1000000.0),
    ALTER fetched_at DROP DEFAULT, ALTER fetched_at DROP NOT NULL, ALTER fetched_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(fetched_at, 0) / 1000000.0),
    ALTER changed_at DROP DEFAULT, ALTER changed_at DROP NOT NULL, ALTER changed_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(changed_at, 0) / 1000000.0),
    ALTER gone_at DROP DEFAULT, ALTER gone_at DROP NOT NULL, ALTER gone_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(gone_at, 0) / 1000000.0);
ALTER TABLE docs_chunks
    ALTER heading TYPE JSONB USING heading::jsonb;
ALTER TABLE docs_blocks
    ALTER blocks TYPE JSONB USING blocks::jsonb;
ALTER TABLE docs_changes
    ALTER sections TYPE JSONB USING sections::jsonb,
    ALTER at TYPE TIMESTAMPTZ USING to_timestamp(at / 1000000.0);
ALTER TABLE docs_blocked_urls
    ALTER blocked_at TYPE TIMESTAMPTZ USING to_timestamp(blocked_at / 1000000.0);
ALTER TABLE docs_hosts
    ALTER next_at TYPE TIMESTAMPTZ USING to_timestamp(next_at / 1000000.0);
ALTER TABLE docs_robots
    ALTER fetched_at TYPE TIMESTAMPTZ USING to_timestamp(fetched_at / 1000000.0);
ALTER TABLE docs_sources
    ALTER checked_at TYPE TIMESTAMPTZ USING to_timestamp(checked_at / 1000000.0);
ALTER TABLE docs_terms
    ALTER checked_at DROP DEFAULT, ALTER checked_at DROP NOT NULL, ALTER checked_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(checked_at, 0) / 1000000.0),
    ALTER read_at DROP DEFAULT, ALTER read_at DROP NOT NULL, ALTER read_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(read_at, 0) / 1000000.0),
    ALTER changed_at DROP DEFAULT, ALTER changed_at DROP NOT NULL, ALTER changed_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(changed_at, 0) / 1000000.0),
    ALTER before_at DROP DEFAULT, ALTER before_at DROP NOT NULL, ALTER before_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(before_at, 0) / 1000000.0);
ALTER TABLE docs_api_files
    ALTER header TYPE JSONB USING header::jsonb,
    ALTER changed TYPE BOOLEAN USING changed <> 0,
    ALTER checked_at DROP DEFAULT, ALTER checked_at DROP NOT NULL, ALTER checked_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(checked_at, 0) / 1000000.0);
CREATE VIEW docs_pages_view AS SELECT
    provider,
    address AS url,
    key,
    status,
    reason,
    title,
    depth,
    http_status,
    chunks,
    content_hash,
    discovered_at,
    fetched_at,
    changed_at,
    gone_at
FROM docs_pages;
CREATE VIEW docs_chunks_view AS SELECT
    c.id,
    c.provider,
    c.key,
    p.address AS url,
    c.ordinal,
    c.heading,
    c.tokens,
    c.hash,
    c.preview
FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key;
CREATE VIEW docs_links_view AS SELECT
    provider,
    from_key,
    ordinal,
    to_key,
    to_address AS to_url
FROM docs_links;
CREATE VIEW docs_runs_view AS SELECT
    session,
    provider,
    run_id,
    state,
    reason,
    started_at,
    active_at,
    finished_at,
    requested,
    stats
FROM docs_runs;
CREATE VIEW docs_changes_view AS SELECT
    session,
    provider,
    key,
    kind,
    sections,
    at
FROM docs_changes;
CREATE INDEX docs_pages_changed ON docs_pages (changed_at);
CREATE VIEW blocked_urls AS SELECT * FROM docs_blocked_urls;
