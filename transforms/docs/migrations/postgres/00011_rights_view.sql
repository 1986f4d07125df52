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
    discovered_at,
    fetched_at,
    changed_at,
    gone_at,
    rights_search,
    rights_ai_input,
    rights_ai_train,
    rights_archive,
    rights
FROM docs_pages;
