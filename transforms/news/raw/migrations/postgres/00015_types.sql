-- +goose Up
-- Columns have the types of PostgreSQL: a time is a timestamptz, NULL for none.
DROP VIEW news_articles_view;
DROP VIEW news_versions_view;
DROP INDEX news_articles_published;
DROP INDEX news_articles_collected;
ALTER TABLE news_articles
    ALTER authors TYPE JSONB USING authors::jsonb,
    ALTER tags DROP DEFAULT, ALTER tags TYPE JSONB USING tags::jsonb, ALTER tags SET DEFAULT '[]',
    ALTER images DROP DEFAULT, ALTER images TYPE JSONB USING images::jsonb, ALTER images SET DEFAULT '[]',
    ALTER compared DROP DEFAULT, ALTER compared TYPE BOOLEAN USING compared <> 0, ALTER compared SET DEFAULT TRUE,
    ALTER published_at DROP DEFAULT, ALTER published_at DROP NOT NULL, ALTER published_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(published_at, 0) / 1000000.0),
    ALTER collected_at TYPE TIMESTAMPTZ USING to_timestamp(collected_at / 1000000.0),
    ALTER changed_at TYPE TIMESTAMPTZ USING to_timestamp(changed_at / 1000000.0),
    ALTER expires_at TYPE TIMESTAMPTZ USING to_timestamp(expires_at / 1000000.0),
    ALTER modified_at DROP DEFAULT, ALTER modified_at DROP NOT NULL, ALTER modified_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(modified_at, 0) / 1000000.0);
ALTER TABLE news_versions
    ALTER published_at DROP DEFAULT, ALTER published_at DROP NOT NULL, ALTER published_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(published_at, 0) / 1000000.0),
    ALTER until_at TYPE TIMESTAMPTZ USING to_timestamp(until_at / 1000000.0);
ALTER TABLE news_urls
    ALTER sitemap_at DROP DEFAULT, ALTER sitemap_at DROP NOT NULL, ALTER sitemap_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(sitemap_at, 0) / 1000000.0),
    ALTER fetched_at TYPE TIMESTAMPTZ USING to_timestamp(fetched_at / 1000000.0);
ALTER TABLE news_runs
    ALTER ended_at TYPE TIMESTAMPTZ USING to_timestamp(ended_at / 1000000.0);
ALTER TABLE news_yield
    ALTER new_at DROP DEFAULT, ALTER new_at DROP NOT NULL, ALTER new_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(new_at, 0) / 1000000.0);
ALTER TABLE news_hosts
    ALTER next_at TYPE TIMESTAMPTZ USING to_timestamp(next_at / 1000000.0);
ALTER TABLE news_schedule
    ALTER asked_at DROP DEFAULT, ALTER asked_at DROP NOT NULL, ALTER asked_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(asked_at, 0) / 1000000.0),
    ALTER due_at DROP DEFAULT, ALTER due_at DROP NOT NULL, ALTER due_at TYPE TIMESTAMPTZ USING to_timestamp(NULLIF(due_at, 0) / 1000000.0);
CREATE VIEW news_articles_view AS SELECT
    id,
    source AS publisher,
    press,
    url,
    canonical_url,
    external_id,
    title,
    raw_text AS text,
    authors,
    language,
    published_at,
    collected_at,
    changed_at,
    expires_at,
    content_hash,
    description,
    section,
    tags,
    images,
    modified_at,
    form,
    version,
    copy_of,
    paywall
FROM news_articles;
CREATE VIEW news_versions_view AS SELECT
    v.article_id,
    a.source AS publisher,
    a.url,
    v.version,
    v.title,
    v.raw_text AS text,
    v.published_at,
    v.until_at,
    v.content_hash
FROM news_versions v JOIN news_articles a ON a.id = v.article_id;
CREATE INDEX news_articles_published ON news_articles (published_at);
CREATE INDEX news_articles_collected ON news_articles (collected_at);
