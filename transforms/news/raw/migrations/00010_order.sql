-- +goose Up
-- The order in which articles are shown and exported, page after page.
CREATE INDEX news_articles_order ON news_articles (source, collected_at, id);
