-- +goose Up
-- Keys of the type number with seven digits or more, which were written as 1.234567e+06,
-- and how they are written now: 1234567.
CREATE TABLE catalog_plain_keys AS SELECT
    site,
    product_key AS was,
    CAST(CAST(product_key AS numeric) AS text) AS plain
FROM catalog_products
WHERE CASE WHEN product_key ~ '^[1-9](\.[0-9]+)?e\+(0[6-9]|1[0-9]|20)$' THEN
    EXISTS (SELECT 1 FROM jsonb_each(detail::jsonb) AS f WHERE jsonb_typeof(f.value) = 'number' AND CAST(f.value AS text) = CAST(CAST(product_key AS numeric) AS text))
    ELSE FALSE END;
