-- +goose Up
-- Columns have the types of PostgreSQL: a time is a timestamptz, NULL for none.
DROP VIEW catalog_products_view;
DROP VIEW catalog_changes_view;
DROP VIEW catalog_crawls_view;
DROP VIEW catalog_images_view;
DROP INDEX catalog_products_changed;
ALTER TABLE catalog_products
    ALTER detail TYPE JSONB USING detail::jsonb,
    ALTER kept DROP DEFAULT, ALTER kept TYPE JSONB USING kept::jsonb, ALTER kept SET DEFAULT '{}',
    ALTER first_seen TYPE TIMESTAMPTZ USING to_timestamp(first_seen / 1000000.0),
    ALTER last_seen TYPE TIMESTAMPTZ USING to_timestamp(last_seen / 1000000.0),
    ALTER changed_at TYPE TIMESTAMPTZ USING to_timestamp(changed_at / 1000000.0),
    ALTER gone_at DROP DEFAULT, ALTER gone_at DROP NOT NULL, ALTER gone_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(gone_at, 0) / 1000000.0),
    ALTER unlisted_at DROP DEFAULT, ALTER unlisted_at DROP NOT NULL, ALTER unlisted_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(unlisted_at, 0) / 1000000.0);
ALTER TABLE catalog_changes
    ALTER changed_at TYPE TIMESTAMPTZ USING to_timestamp(changed_at / 1000000.0),
    ALTER was TYPE JSONB USING was::jsonb,
    ALTER became TYPE JSONB USING became::jsonb;
ALTER TABLE catalog_tasks
    ALTER not_before TYPE TIMESTAMPTZ USING to_timestamp(not_before / 1000000.0),
    ALTER fetched TYPE BOOLEAN USING fetched <> 0;
ALTER TABLE catalog_crawls
    ALTER started_at TYPE TIMESTAMPTZ USING to_timestamp(started_at / 1000000.0),
    ALTER finished_at DROP DEFAULT, ALTER finished_at DROP NOT NULL, ALTER finished_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(finished_at, 0) / 1000000.0);
ALTER TABLE catalog_hosts
    ALTER next_at TYPE TIMESTAMPTZ USING to_timestamp(next_at / 1000000.0);
ALTER TABLE catalog_tags
    ALTER tags TYPE JSONB USING tags::jsonb,
    ALTER tagged_at TYPE TIMESTAMPTZ USING to_timestamp(tagged_at / 1000000.0);
ALTER TABLE catalog_images
    ALTER fetched_at DROP DEFAULT, ALTER fetched_at DROP NOT NULL, ALTER fetched_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(fetched_at, 0) / 1000000.0),
    ALTER asked_at DROP DEFAULT, ALTER asked_at DROP NOT NULL, ALTER asked_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(asked_at, 0) / 1000000.0),
    ALTER again_at DROP DEFAULT, ALTER again_at DROP NOT NULL, ALTER again_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(again_at, 0) / 1000000.0);
ALTER TABLE catalog_product_images
    ALTER first_seen TYPE TIMESTAMPTZ USING to_timestamp(first_seen / 1000000.0),
    ALTER last_seen TYPE TIMESTAMPTZ USING to_timestamp(last_seen / 1000000.0),
    ALTER gone_at DROP DEFAULT, ALTER gone_at DROP NOT NULL, ALTER gone_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(gone_at, 0) / 1000000.0);
CREATE VIEW catalog_products_view AS SELECT
    site,
    product_key,
    url,
    state,
    first_seen,
    last_seen,
    changed_at,
    gone_at,
    detail AS fields,
    kept,
    content_hash,
    COALESCE((SELECT t.tags FROM catalog_tags t WHERE t.site = p.site AND t.product_key = p.product_key), '[]') AS tags
FROM catalog_products p;
CREATE VIEW catalog_changes_view AS SELECT
    site,
    product_key,
    changed_at,
    field,
    was,
    became,
    run_id
FROM catalog_changes;
CREATE VIEW catalog_crawls_view AS SELECT
    site,
    number,
    started_at,
    finished_at,
    partial <> 0 AS partial
FROM catalog_crawls;
CREATE VIEW catalog_images_view AS SELECT
    n.site,
    n.product_key,
    n.url,
    n.field,
    n.position,
    n.first_seen,
    n.last_seen,
    n.gone_at,
    COALESCE(i.hash, '') AS hash,
    COALESCE(i.type, '') AS type,
    COALESCE(i.bytes, 0) AS bytes,
    COALESCE(i.width, 0) AS width,
    COALESCE(i.height, 0) AS height,
    i.fetched_at,
    COALESCE(i.failure, '') AS failure
FROM catalog_product_images n LEFT JOIN catalog_images i ON i.site = n.site AND i.url = n.url;
CREATE INDEX catalog_products_changed ON catalog_products (changed_at);
