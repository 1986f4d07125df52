-- +goose Up
-- The tables as one queries them: times, JSON, and names that no other program's tables have.
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
    to_timestamp(discovered_at / 1000000.0) AS discovered_at,
    to_timestamp(NULLIF(fetched_at, 0) / 1000000.0) AS fetched_at,
    to_timestamp(NULLIF(changed_at, 0) / 1000000.0) AS changed_at,
    to_timestamp(NULLIF(gone_at, 0) / 1000000.0) AS gone_at
FROM pages;
CREATE VIEW docs_chunks_view AS SELECT
    c.id,
    c.provider,
    c.key,
    p.address AS url,
    c.ordinal,
    c.heading::jsonb AS heading,
    c.tokens,
    c.hash,
    c.preview
FROM chunks c JOIN pages p ON p.provider = c.provider AND p.key = c.key;
CREATE VIEW docs_links_view AS SELECT
    provider,
    from_key,
    ordinal,
    to_key,
    to_address AS to_url
FROM links;
CREATE VIEW docs_runs_view AS SELECT
    session,
    provider,
    run_id,
    state,
    reason,
    to_timestamp(started_at / 1000000.0) AS started_at,
    to_timestamp(active_at / 1000000.0) AS active_at,
    to_timestamp(NULLIF(finished_at, 0) / 1000000.0) AS finished_at,
    requested,
    stats::jsonb AS stats
FROM runs;
CREATE VIEW docs_changes_view AS SELECT
    session,
    provider,
    key,
    kind,
    sections::jsonb AS sections,
    to_timestamp(at / 1000000.0) AS at
FROM docs_changes;
CREATE INDEX pages_changed ON pages (to_timestamp(NULLIF(changed_at, 0) / 1000000.0));
