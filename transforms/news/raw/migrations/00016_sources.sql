-- +goose Up
-- How many articles each source of a publisher named in the last run: JSON.
ALTER TABLE news_yield ADD COLUMN sources TEXT NOT NULL DEFAULT '{}';
ALTER TABLE news_yield DROP COLUMN named;

-- +goose Down
ALTER TABLE news_yield ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
ALTER TABLE news_yield DROP COLUMN sources;
