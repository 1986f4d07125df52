-- +goose Up
CREATE TABLE catalog_products (
    site         TEXT   NOT NULL,
    product_key  TEXT   NOT NULL,
    url          TEXT   NOT NULL,
    detail       TEXT   NOT NULL, -- JSON: the site's fields by name
    content_hash TEXT   NOT NULL, -- of detail
    first_seen   BIGINT NOT NULL, -- microseconds since 1970 UTC, as all times here
    last_seen    BIGINT NOT NULL,
    changed_at   BIGINT NOT NULL, -- when detail became what it is
    PRIMARY KEY (site, product_key)
);
CREATE INDEX catalog_products_url ON catalog_products (site, url);

-- The durable queue: the pages of a crawl that is not over. Rows that are done
-- stay until its end, so that no page is fetched twice in one crawl.
CREATE TABLE catalog_tasks (
    site       TEXT    NOT NULL,
    kind       TEXT    NOT NULL, -- FetchListPage or FetchProductDetailPage
    url        TEXT    NOT NULL,
    page       INTEGER NOT NULL, -- of the list
    state      INTEGER NOT NULL, -- 0 waits, 1 begun, 2 done
    tries      INTEGER NOT NULL,
    fetched    INTEGER NOT NULL, -- 1: this run has counted it
    not_before BIGINT  NOT NULL,
    PRIMARY KEY (site, url, kind) -- url second: PostgreSQL finds a list of them by it
);
CREATE INDEX catalog_tasks_waiting ON catalog_tasks (site, not_before) WHERE state = 0;

CREATE TABLE catalog_crawls (
    site        TEXT   NOT NULL PRIMARY KEY,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL -- 0: it is not over, and its tasks are gone on with
);
