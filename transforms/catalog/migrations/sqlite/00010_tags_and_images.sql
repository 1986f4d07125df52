-- +goose Up
-- Tags and images, as the exports have them.
DROP VIEW catalog_products_view;
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
    kept AS kept,
    content_hash,
    COALESCE((SELECT t.tags FROM catalog_tags t WHERE t.site = p.site AND t.product_key = p.product_key), '[]') AS tags
FROM catalog_products p;
CREATE VIEW catalog_images_view AS SELECT
    n.site,
    n.product_key,
    n.url,
    n.field,
    n.position,
    strftime('%Y-%m-%dT%H:%M:%S', n.first_seen / 1000000, 'unixepoch') || printf('.%06dZ', n.first_seen % 1000000) AS first_seen,
    strftime('%Y-%m-%dT%H:%M:%S', n.last_seen / 1000000, 'unixepoch') || printf('.%06dZ', n.last_seen % 1000000) AS last_seen,
    CASE WHEN n.gone_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', n.gone_at / 1000000, 'unixepoch') || printf('.%06dZ', n.gone_at % 1000000) END AS gone_at,
    COALESCE(i.hash, '') AS hash,
    COALESCE(i.type, '') AS type,
    COALESCE(i.bytes, 0) AS bytes,
    COALESCE(i.width, 0) AS width,
    COALESCE(i.height, 0) AS height,
    CASE WHEN i.fetched_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', i.fetched_at / 1000000, 'unixepoch') || printf('.%06dZ', i.fetched_at % 1000000) END AS fetched_at,
    COALESCE(i.failure, '') AS failure
FROM catalog_product_images n LEFT JOIN catalog_images i ON i.site = n.site AND i.url = n.url;
