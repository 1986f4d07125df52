-- +goose Up
-- Tags and images, as the exports have them.
DROP VIEW catalog_products_view;
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
    content_hash,
    COALESCE((SELECT t.tags FROM catalog_tags t WHERE t.site = p.site AND t.product_key = p.product_key), '[]')::jsonb AS tags
FROM catalog_products p;
CREATE VIEW catalog_images_view AS SELECT
    n.site,
    n.product_key,
    n.url,
    n.field,
    n.position,
    to_timestamp(n.first_seen / 1000000.0) AS first_seen,
    to_timestamp(n.last_seen / 1000000.0) AS last_seen,
    to_timestamp(NULLIF(n.gone_at, 0) / 1000000.0) AS gone_at,
    COALESCE(i.hash, '') AS hash,
    COALESCE(i.type, '') AS type,
    COALESCE(i.bytes, 0) AS bytes,
    COALESCE(i.width, 0) AS width,
    COALESCE(i.height, 0) AS height,
    to_timestamp(NULLIF(i.fetched_at, 0) / 1000000.0) AS fetched_at,
    COALESCE(i.failure, '') AS failure
FROM catalog_product_images n LEFT JOIN catalog_images i ON i.site = n.site AND i.url = n.url;
