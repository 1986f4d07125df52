-- +goose Up
-- The tables as one queries them: times, JSON, and the names of the exports.
CREATE VIEW catalog_products_view AS SELECT
    site,
    product_key,
    url,
    state,
    strftime('%Y-%m-%dT%H:%M:%S', first_seen / 1000000, 'unixepoch') || printf('.%06dZ', first_seen % 1000000) AS first_seen,
    strftime('%Y-%m-%dT%H:%M:%S', last_seen / 1000000, 'unixepoch') || printf('.%06dZ', last_seen % 1000000) AS last_seen,
    strftime('%Y-%m-%dT%H:%M:%S', changed_at / 1000000, 'unixepoch') || printf('.%06dZ', changed_at % 1000000) AS changed_at,
    CASE WHEN gone_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', gone_at / 1000000, 'unixepoch') || printf('.%06dZ', gone_at % 1000000) END AS gone_at,
    detail AS fields,
    kept,
    content_hash
FROM catalog_products;
CREATE VIEW catalog_changes_view AS SELECT
    site,
    product_key,
    strftime('%Y-%m-%dT%H:%M:%S', changed_at / 1000000, 'unixepoch') || printf('.%06dZ', changed_at % 1000000) AS changed_at,
    field,
    was,
    became,
    run_id
FROM catalog_changes;
CREATE VIEW catalog_crawls_view AS SELECT
    site,
    number,
    strftime('%Y-%m-%dT%H:%M:%S', started_at / 1000000, 'unixepoch') || printf('.%06dZ', started_at % 1000000) AS started_at,
    CASE WHEN finished_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', finished_at / 1000000, 'unixepoch') || printf('.%06dZ', finished_at % 1000000) END AS finished_at,
    partial <> 0 AS partial
FROM catalog_crawls;
CREATE INDEX catalog_products_changed ON catalog_products (changed_at);
