-- +goose Up
-- url first: without statistics, which a queue has no time to gather, PostgreSQL
-- takes a site for few rows, and reads all of them for each list of urls.
CREATE TABLE catalog_tasks_by_url (
    site       TEXT    NOT NULL,
    kind       TEXT    NOT NULL, -- FetchListPage or FetchProductDetailPage
    url        TEXT    NOT NULL,
    page       INTEGER NOT NULL, -- of the list
    state      INTEGER NOT NULL, -- 0 waits, 1 begun, 2 done
    tries      INTEGER NOT NULL,
    fetched    INTEGER NOT NULL, -- 1: this run has counted it
    not_before BIGINT  NOT NULL,
    PRIMARY KEY (url, site, kind)
);
INSERT INTO catalog_tasks_by_url SELECT site, kind, url, page, state, tries, fetched, not_before FROM catalog_tasks;
DROP TABLE catalog_tasks;
ALTER TABLE catalog_tasks_by_url RENAME TO catalog_tasks;
CREATE INDEX catalog_tasks_waiting ON catalog_tasks (site, not_before) WHERE state = 0;
