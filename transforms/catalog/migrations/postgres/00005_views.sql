-- +goose Up
-- The tables as one queries them: times, JSON, and the names of the exports.
CREATE VIEW catalog_products_view AS SELECT
    site,
    product_key,
    url,
    state,
    to_timestamp(first_seen / 1000000.0) AS first_seen,
    to_timestamp(last_seen / 1000000.0) AS last_seen,
    to_timestamp(changed_at / 1000000.0) AS changed_at,
    to_timestamp(NULLIF(gone_at, 0) / 1000000.0) AS gone_at,
    detail::jsonb AS fields,
    kept::jsonb AS kept,
    content_hash
FROM catalog_products;
CREATE VIEW catalog_changes_view AS SELECT
    site,
    product_key,
    to_timestamp(changed_at / 1000000.0) AS changed_at,
    field,
    was::jsonb AS was,
    became::jsonb AS became,
    run_id
FROM catalog_changes;
CREATE VIEW catalog_crawls_view AS SELECT
    site,
    number,
    to_timestamp(started_at / 1000000.0) AS started_at,
    to_timestamp(NULLIF(finished_at, 0) / 1000000.0) AS finished_at,
    partial <> 0 AS partial
FROM catalog_crawls;
CREATE INDEX catalog_products_changed ON catalog_products (to_timestamp(changed_at / 1000000.0));
