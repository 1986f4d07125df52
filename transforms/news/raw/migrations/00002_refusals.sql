-- +goose Up
-- How often an address was asked for in vain since its page was last kept: the
-- publisher refused it, or the database refused what its page says.
ALTER TABLE news_urls ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
