-- +goose Up
-- How many articles a publisher's largest source named in the last run that could tell.
ALTER TABLE news_yield ADD COLUMN named INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE news_yield DROP COLUMN named;
