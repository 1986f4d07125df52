-- +goose Up
-- Keys of the type number with seven digits or more, which were written as 1.234567e+06,
-- and how they are written now: 1234567.
CREATE TABLE catalog_plain_keys AS SELECT
    site,
    product_key AS was,
    substr(digits || '00000000000000000000', 1, places + 1) || CASE WHEN length(digits) > places + 1 THEN '.' || substr(digits, places + 2) ELSE '' END AS plain
FROM (SELECT
        site,
        product_key,
        detail,
        replace(substr(product_key, 1, instr(product_key, 'e+') - 1), '.', '') AS digits,
        CAST(substr(product_key, instr(product_key, 'e+') + 2) AS INTEGER) AS places
    FROM catalog_products WHERE product_key GLOB '[1-9]*e+[0-9][0-9]') AS p
WHERE places BETWEEN 6 AND 20 AND digits NOT GLOB '*[^0-9]*'
    AND EXISTS (SELECT 1 FROM json_each(p.detail) AS f WHERE f.type IN ('integer', 'real') AND f.value = CAST(p.product_key AS REAL));
