-- +goose Up
ALTER TABLE news_articles ADD COLUMN compared INTEGER NOT NULL DEFAULT 1; -- 0: its text or its time changed since copy_of was decided
CREATE INDEX news_articles_alike ON news_articles (published_at) WHERE simhash <> 0;
