// The query behind "Explain what failed": compares the properties of failed and delivered messages of a destination. Which messages failed is in the store and
// not in the lake, so their ids are part of the query.

/** Keeps the query below its largest length. */
const MAX_IDS = 500

export function failedQuery(schemas: readonly string[], failed: readonly string[], delivered: readonly string[]): string {
  const messages = schemas.map((schema) => `select id, message from ${identifier(schema)}._messages`).join('\n  union all ')
  return `with outcomes(id, outcome) as (
  select unnest(${list(failed)}), 'failed'
  union all select unnest(${list(delivered)}), 'delivered'
), messages as (
  ${messages}
), found as (
  select outcome, fullkey as property, tree.type as found_type, left(atom::varchar, 80) as value
  from messages join outcomes using (id), json_tree(message) tree
  where atom is not null and (fullkey like '$.properties.%' or fullkey like '$.traits.%' or fullkey like '$.context.%')
)
select property, found_type,
  count(*) filter (outcome = 'failed') as failed,
  count(*) filter (outcome = 'delivered') as delivered,
  any_value(value) filter (outcome = 'failed') as example
from found
group by all
order by failed / (failed + delivered) desc, failed desc
limit 100`
}

function list(ids: readonly string[]): string {
  return `[${ids
    .slice(0, MAX_IDS)
    .map((id) => `'${id.replaceAll("'", "''")}'`)
    .join(', ')}]::varchar[]`
}

export function identifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !QUOTED.has(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** Names of sources that are words of SQL. */
const QUOTED = new Set(['default', 'user', 'group', 'order', 'table', 'select', 'all', 'end'])
