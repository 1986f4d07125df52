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
    strftime('%Y-%m-%dT%H:%M:%S', discovered_at / 1000000, 'unixepoch') || printf('.%06dZ', discovered_at % 1000000) AS discovered_at,
    CASE WHEN fetched_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', fetched_at / 1000000, 'unixepoch') || printf('.%06dZ', fetched_at % 1000000) END AS fetched_at,
    CASE WHEN changed_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', changed_at / 1000000, 'unixepoch') || printf('.%06dZ', changed_at % 1000000) END AS changed_at,
    CASE WHEN gone_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', gone_at / 1000000, 'unixepoch') || printf('.%06dZ', gone_at % 1000000) END AS gone_at
FROM pages;
CREATE VIEW docs_chunks_view AS SELECT
    c.id,
    c.provider,
    c.key,
    p.address AS url,
    c.ordinal,
    c.heading AS heading,
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
    strftime('%Y-%m-%dT%H:%M:%S', started_at / 1000000, 'unixepoch') || printf('.%06dZ', started_at % 1000000) AS started_at,
    strftime('%Y-%m-%dT%H:%M:%S', active_at / 1000000, 'unixepoch') || printf('.%06dZ', active_at % 1000000) AS active_at,
    CASE WHEN finished_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', finished_at / 1000000, 'unixepoch') || printf('.%06dZ', finished_at % 1000000) END AS finished_at,
    requested,
    stats
FROM runs;
CREATE VIEW docs_changes_view AS SELECT
    session,
    provider,
    key,
    kind,
    sections,
    strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch') || printf('.%06dZ', at % 1000000) AS at
FROM docs_changes;
CREATE INDEX pages_changed ON pages (changed_at);
