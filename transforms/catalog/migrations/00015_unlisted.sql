-- +goose Up
ALTER TABLE catalog_products ADD COLUMN unlisted_at BIGINT NOT NULL DEFAULT 0; -- since when the lists that were read whole do not name it; 0: they name it
ALTER TABLE catalog_tasks ADD COLUMN asked TEXT NOT NULL DEFAULT ''; -- key of the product that the list does not name, and whose page is therefore requested; '': the list names the page
ALTER TABLE catalog_crawls DROP COLUMN first_reading;
