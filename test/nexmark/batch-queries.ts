/** The queries as SQL over the whole file at once, for DuckDB: what every query must come to. */
import { DuckDBInstance } from '@duckdb/node-api'

/** The start of the window of that size that a time is in, before 1970 too. */
const windowOf = (time: string, sizeMs: number): string => `${time} - ((${time} % ${sizeMs}) + ${sizeMs}) % ${sizeMs}`

const converted = 'CAST(price AS DECIMAL(20, 0)) * CAST(0.908 AS DECIMAL(4, 3))'
const hour = 'hour(make_timestamp(dateTime * 1000))'

const sql: Readonly<Record<string, string>> = {
  q0: 'SELECT auction, bidder, price, dateTime, extra FROM bid',
  q1: `SELECT auction, bidder, CAST(${converted} AS VARCHAR) AS price, dateTime, extra FROM bid`,
  q2: 'SELECT auction, price FROM bid WHERE auction % 123 = 0',
  q5: `
    WITH counts AS (
      SELECT auction, count(*) AS num, starttime
      FROM (SELECT auction, ${windowOf('dateTime', 2_000)} - 2000 * unnest(range(5)) AS starttime FROM bid)
      GROUP BY auction, starttime
    )
    SELECT auction, num, starttime, starttime + 10000 AS endtime FROM counts
    QUALIFY num = max(num) OVER (PARTITION BY starttime)`,
  q7: `
    SELECT auction, bidder, price, dateTime, extra FROM bid
    QUALIFY price = max(price) OVER (PARTITION BY ${windowOf('dateTime', 10_000)})`,
  q11: `
    WITH gaps AS (
      SELECT bidder, dateTime, dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) AS gap FROM bid
    ), sessions AS (
      SELECT bidder, dateTime, sum(CASE WHEN gap < 10000 THEN 0 ELSE 1 END)
        OVER (PARTITION BY bidder ORDER BY dateTime) AS session
      FROM gaps
    )
    SELECT bidder, count(*) AS bid_count, min(dateTime) AS starttime, max(dateTime) + 10000 AS endtime
    FROM sessions GROUP BY bidder, session`,
  q12: `
    SELECT bidder, count(*) AS bid_count, starttime, starttime + 10000 AS endtime
    FROM (SELECT bidder, ${windowOf('dateTime', 10_000)} AS starttime FROM bid)
    GROUP BY bidder, starttime`,
  q14: `
    SELECT auction, bidder, CAST(${converted} AS VARCHAR) AS price,
      CASE WHEN ${hour} BETWEEN 8 AND 18 THEN 'dayTime' WHEN ${hour} IN (7, 19) THEN 'otherTime' ELSE 'nightTime' END
        AS bidTimeType,
      dateTime, extra, len(extra) - len(replace(extra, 'c', '')) AS c_counts
    FROM bid WHERE ${converted} > 1000000 AND ${converted} < 50000000`,
  q21: `
    SELECT auction, bidder, price, channel,
      CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
        ELSE regexp_extract(url, '&channel_id=([^&]*)', 1) END AS channel_id
    FROM bid
    WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu') OR regexp_matches(url, '&channel_id=')`,
  q22: `
    SELECT auction, bidder, price, channel, string_split(url, '/')[4] AS dir1, string_split(url, '/')[5] AS dir2,
      string_split(url, '/')[6] AS dir3
    FROM bid`,
}

/** The rows of a query over an event file, as lines of JSON in no order. */
export type BatchQuery = (query: string) => Promise<readonly string[]>

/** Opens an event file. `close` must be called. */
export async function openBatch(file: string): Promise<{ readonly rows: BatchQuery; readonly close: () => void }> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  await connection.run(`
    CREATE TABLE bid AS
    SELECT auction, bidder, price, channel, url, eventTime AS dateTime, extra
    FROM read_json('${file}', format = 'newline_delimited', columns = {
      type: 'VARCHAR', eventTime: 'BIGINT', auction: 'BIGINT', bidder: 'BIGINT', price: 'BIGINT', channel: 'VARCHAR',
      url: 'VARCHAR', extra: 'VARCHAR'
    })
    WHERE type = 'bid'`)
  return {
    async rows(query) {
      const answer = await connection.runAndReadAll(`SELECT CAST(to_json(row) AS VARCHAR) FROM (${sql[query]}) AS row`)
      return answer.getRows().map(([line]) => line as string)
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
