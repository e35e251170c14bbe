-- What was paid for the orders of each hour and product. A payment belongs to its order if it came within the hour.
SELECT
    orders.product AS _key,
    orders.product,
    window.start AS hour,
    count(*) AS paid_orders,
    round(sum(payments.amount), 2) AS takings
FROM orders
JOIN payments
    ON payments.order_id = orders.id
    AND payments.paid_at BETWEEN orders.at AND orders.at + INTERVAL 1 HOUR
GROUP BY orders.product, window(orders.at, '1 hour')
