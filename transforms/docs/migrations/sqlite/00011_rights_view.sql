-- +goose Up
-- The views have what sites say about use.
DROP VIEW docs_pages_view;
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
    CASE WHEN gone_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', gone_at / 1000000, 'unixepoch') || printf('.%06dZ', gone_at % 1000000) END AS gone_at,
    rights_search,
    rights_ai_input,
    rights_ai_train,
    rights_archive,
    rights
FROM docs_pages;
