-- +goose Up
-- By its title and text a page is recognised at another address.
CREATE INDEX news_articles_same ON news_articles (source, title_hash);

-- +goose Down
DROP INDEX news_articles_same;
